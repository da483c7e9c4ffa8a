"""Records by a fixed rule, without a model (FlexA-Mem E.8; the rule's form is ours: docs/methods.md A.8)."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from flexmem.history import Unit
from flexmem.memory.flexa.entities import find_entities
from flexmem.memory.flexa.merging import merge_by_rule
from flexmem.memory.flexa.records import ENTITIES, KEYWORDS, Record, last_words
from flexmem.retrieval.text import content_words

_ACTION_WORDS = 12
_OUTPUT_WORDS = 12
_LEFT_BEHIND = 4
_FENCE = re.compile(r"```[\w+-]*\n(.*?)(?:```|\Z)", re.S)
_ERROR = re.compile(
    r"\b(?:error|exception|failed|failure|denied|invalid|unauthori[sz]ed|not found|no such|4\d\d|5\d\d)\b", re.I
)
_ASSIGNED = re.compile(r"^\s*([A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)*)\s*=(?!=)", re.M)
_COMMENT = re.compile(r"^\s*(?:#|//).*$")
_SENTENCE = re.compile(r"[^\n.!?。！？]*(?:[.!?。！？]+(?=\s|$)|[.!?。！？]+|\n|$)")


class RuleWriter:
    """Extractive records. Agent units: a line a step, the call and what came back. Reader units: the date, then the
    rarest sentences.

    Args:
        words: a record's cut.
        merge_words: a merged record's cut.
    """

    def __init__(self, words: int, merge_words: int) -> None:
        self._words = words
        self._merge_words = merge_words
        self._document_frequency: Counter[str] = Counter()
        self._documents = 0
        self._units = 0

    async def write(self, unit: Unit, previous: str | None) -> Record:
        return self.record(unit)

    async def merge(self, texts: Sequence[str], labels: Sequence[str]) -> str:
        return merge_by_rule(texts, self._merge_words)

    def recall(self, unit: Unit) -> None:
        if unit.uid < self._units:
            return  # a write that failed is tried again
        self._units = unit.uid + 1
        for block in unit.blocks:
            for sentence in sentences(unit.text[block.content_start : block.end]):
                self._document_frequency.update(set(content_words(sentence)))
                self._documents += 1

    def record(self, unit: Unit) -> Record:
        """The record of the next unit; statistics cover this unit and those before it."""
        self.recall(unit)
        text = self._agent_text(unit) if unit.kind == "agent" else self._reader_text(unit)
        body = "".join(unit.text[block.content_start : block.end] for block in unit.blocks)
        return Record(unit.uid, text, self._keywords(body), find_entities(body, ENTITIES))

    def _idf(self, word: str) -> float:
        frequency = self._document_frequency[word]
        return math.log(1 + (self._documents - frequency + 0.5) / (frequency + 0.5))

    def _keywords(self, body: str) -> tuple[str, ...]:
        weights = {word: times * self._idf(word) for word, times in Counter(content_words(body)).items()}
        return tuple(sorted(weights, key=lambda word: (-weights[word], word))[:KEYWORDS])

    # ------------------------------------------------------------ reader

    def _reader_text(self, unit: Unit) -> str:
        """The date, then sentences by mean idf of their content words, user's turns first, in original order, filled
        to the cut.
        """
        date = f"{unit.time}:".split() if unit.time else []
        room = self._words - len(date)
        lines = list(_spoken(unit))
        chosen: dict[int, list[str]] = {}
        by_weight = sorted(range(len(lines)), key=lambda i: (lines[i][1], -self._weight(lines[i][2]), i))
        for i in by_weight:
            words = lines[i][2].split()
            if words and len(words) <= room:
                chosen[i] = words
                room -= len(words)
        for i in by_weight:  # what is left over goes to the head of the best sentence that did not fit
            if room < 1:
                break
            if i not in chosen and lines[i][2].split():
                chosen[i] = lines[i][2].split()[:room]
                room -= len(chosen[i])
        return " ".join(date + [word for i in sorted(chosen) for word in chosen[i]])

    def _weight(self, sentence: str) -> float:
        words = content_words(sentence)
        return sum(map(self._idf, words)) / len(words) if words else 0.0

    # ------------------------------------------------------------ agent

    def _agent_text(self, unit: Unit) -> str:
        """``15: call -> what came back`` for each step, cut from the front so that the newest step stays."""
        return last_words("; ".join(_step_lines(unit)), self._words)


def sentences(text: str) -> list[str]:
    """Sentences and lines of a text, blank ones left out."""
    return [match.group().strip() for match in _SENTENCE.finditer(text) if match.group().strip()]


def _spoken(unit: Unit) -> Iterator[tuple[int, int, str]]:
    """(position, 0 for the user's or a named speaker's and 1 for others', sentence), a named speaker's name on each
    turn's first sentence.
    """
    position = 0
    for block in unit.blocks:
        prefix = unit.text[block.start : block.content_start]
        rank = 0 if prefix in ("", "user: ") else 1
        for sentence in sentences(unit.text[block.content_start : block.end]):
            yield position, rank, sentence
            position += 1


def _step_lines(unit: Unit) -> Iterator[str]:
    steps: dict[str, dict[str, str]] = {}
    for block in unit.blocks:
        steps.setdefault(block.source, {})[block.kind] = unit.text[block.content_start : block.end]
    for source, parts in steps.items():
        code = _code(parts.get("action", ""))
        call = " ".join(code.split()[:_ACTION_WORDS])
        result = _result(parts.get("output", ""))
        left = _left_behind(code, call)
        yield f"{source.removeprefix('step ')}: {call} -> {result or 'no output'}{left}"


def _code(action: str) -> str:
    """The action's code without fences and comments; an action without a fence is all code."""
    fenced = _FENCE.search(action)
    code = fenced.group(1) if fenced else action
    return "\n".join(line for line in code.split("\n") if line.strip() and not _COMMENT.match(line))


def _result(output: str) -> str:
    """The last error line if there is one, else the first content words of the output."""
    errors = [line for line in output.split("\n") if _ERROR.search(line)]
    if errors:
        return " ".join(errors[-1].split()[:_OUTPUT_WORDS])
    words: list[str] = []
    for word in output.split():
        if content_words(word):
            words.append(word)
            if len(words) == _OUTPUT_WORDS:
                break
    return " ".join(words)


def _left_behind(code: str, call: str) -> str:
    """Names that the step assigned and that its shown head does not name."""
    names: dict[str, None] = {}
    for match in _ASSIGNED.finditer(code):
        for name in match.group(1).split(","):
            if name.strip() not in call.split():
                names.setdefault(name.strip())
    return f" [left {', '.join(list(names)[:_LEFT_BEHIND])}]" if names else ""
