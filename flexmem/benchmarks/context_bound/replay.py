"""A recorded world: says what the real one said, and knows whether the task is carried out.

It is the real world until something is done that no recording foresees: a change that spoils the task is made once
more, or one is made through variables that hold other things than planned, since they were read again after an earlier
change. From then on (``exact`` is False) it answers as best it can, and the verdict is no.
"""

from __future__ import annotations

from collections.abc import Mapping

from flexmem.agents.context_bound.cells import Cell, all_cells
from flexmem.agents.context_bound.needs import needs_of
from flexmem.agents.context_bound.witness import tells_failure
from flexmem.benchmarks.context_bound.recording import Recording, RecordingError, Reply

_PLANNED = 0
"""A variable holds what it holds in the plan. A number above: it holds what it does when everything is read again after
so many changes.
"""
_OTHER = -1


class Replay:
    """One episode's world."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._plan = recording.plan
        self._cells: Mapping[str, Cell] = {cell.code: cell for cell in all_cells(recording.plan)}
        self._log_ins = 0
        self._tokens: dict[str, str] = {}  # every token that was given, by itself: the variable that held it
        self._shown: dict[str, str] = {}  # of each token's variable: what its log-in said last
        self._made: set[str] = set()
        self._held: dict[str, int] = {}  # what each variable holds
        self.done = False
        self.exact = True

    def execute(self, code: str) -> str:
        """What the world says to one of the plan's cells.

        Raises:
            RecordingError: it is none of them, or there were more log-ins than are recorded.
        """
        cell = self._cell(code)
        if cell.kind == "login":
            return self._log_in(cell)
        text = self._changed(cell) if cell.id in self._recording.changes else self._said(cell)
        self.done = self.done or cell.kind == "final"
        for token, name in self._tokens.items():
            if repr(token) in code:
                text = _echoing(text, name, repr(token))
        return text

    def verdict(self) -> bool:
        """Whether the task was carried out: closed, and every change made, as planned."""
        return self.done and self.exact and self._recording.changes <= self._made

    def _cell(self, code: str) -> Cell:
        plain = code
        for token, name in self._tokens.items():
            plain = plain.replace(repr(token), name)
        if plain not in self._cells:
            raise RecordingError(f"{self._plan.task}: this is no cell of the recorded plan: {code}")
        return self._cells[plain]

    def _log_in(self, cell: Cell) -> str:
        self._log_ins += 1
        tokens = self._recording.tokens[cell.id]
        if self._log_ins > len(tokens):
            raise RecordingError(f"{self._plan.task}: {len(tokens)} log-ins are recorded, and this is one more")
        token = tokens[self._log_ins - 1]
        (name,) = needs_of(cell.code).binds
        self._tokens[token] = name
        self._shown[name] = self._recording.log_ins[cell.id].replace(tokens[0], token)
        return self._shown[name]

    def _changed(self, cell: Cell) -> str:
        """What is said to a change."""
        names = needs_of(cell.code).names
        again = cell.id in self._made
        planned = all(self._held.get(name, _PLANNED) == _PLANNED for name in names)
        self.exact = self.exact and planned and not (again and cell.id in self._recording.spoiling)
        self._made.add(cell.id)
        return self._recording.repeated[cell.id] if again else self._recording.replies[cell.id][0].text

    def _said(self, cell: Cell) -> str:
        """What is said to a cell that reads, computes or prints."""
        if cell.kind == "print" and cell.id.removeprefix("print:") in self._shown:
            return self._shown[cell.id.removeprefix("print:")]
        needs = needs_of(cell.code)
        held = {name: self._held.get(name, _PLANNED) for name in needs.names}
        # What is only computed is as old as what it is computed from.
        now = len(self._made) if needs.apis else max(held.values(), default=_PLANNED)
        planned = all(state == _PLANNED for state in held.values())
        reread = all(state == self._reread(name, now) for name, state in held.items())
        self.exact = self.exact and (planned or reread)
        reply = _latest(self._recording.replies[cell.id], now) if planned else self._again(cell.id, now)
        if not tells_failure(reply.text, self._plan.conventions):
            for name in needs.binds:
                same = reread or reply.text == self._again(cell.id, now).text
                first = planned and reply.after == _PLANNED
                self._held[name] = _PLANNED if first else self._reread(name, now) if same else _OTHER
        return reply.text

    def _reread(self, name: str, changes: int) -> int:
        """What a variable holds when everything is read again after each of so many changes."""
        step = self._plan.binder[name]
        cell = f"step:{step.id}"
        if step.logs_in or cell in self._recording.changes:
            return _PLANNED
        reply = self._again(cell, changes)
        if tells_failure(reply.text, self._plan.conventions):
            return self._reread(name, reply.after - 1)
        return max([reply.after, *(self._reread(inner, changes) for inner in step.needs.names)])

    def _again(self, cell: str, changes: int) -> Reply:
        first = self._recording.replies[cell][:1]
        return _latest((*first, *self._recording.reread.get(cell, ())), changes)


def _echoing(text: str, name: str, said: str) -> str:
    """A reply that shows code, as a traceback does, with what was said in a variable's place, and the line of carets
    below it as long as that is.
    """
    lines = text.split("\n")
    for number, line in enumerate(lines):
        place = line.find(name)
        if place < 0:
            continue
        lines[number] = line[:place] + said + line[place + len(name) :]
        below = lines[number + 1] if number + 1 < len(lines) else ""
        if below.strip() and not below.strip(" ~^") and place < len(below):
            lines[number + 1] = below[:place] + below[place] * len(said) + below[place + len(name) :]
    return "\n".join(lines)


def _latest(replies: tuple[Reply, ...], changes: int) -> Reply:
    """The last reply of at most so many changes."""
    return [reply for reply in replies if reply.after <= max(changes, 0)][-1]
