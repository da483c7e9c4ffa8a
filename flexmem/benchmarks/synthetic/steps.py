"""Agents' trajectories of any size: steps of Python code that calls made-up apps, with what the apps print.

For tests of scale and of invariants, not of skill: nothing is asked about them.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from flexmem import tokens as counting
from flexmem.benchmarks.synthetic.draw import Draw
from flexmem.benchmarks.synthetic.telling import value
from flexmem.history import Step

_STEP_LABELS = 12  # tokens of the words that a unit puts around a step: "Step 7", "Thought:", "Action:", "Output:"
_RECORD_TOKENS = 60  # of a listed record, about
_PAGE_LIMITS = (5, 10, 20)
_LARGE_STEP = 250  # tokens; with less room than that only short steps are taken
_ROOM_ENOUGH = 20  # tokens; less than that is not worth a step
_ERROR_RATE = 0.18
_THOUGHT_RATE = 0.5


@dataclass(frozen=True, slots=True)
class _App:
    """An app that keeps ``many`` records of ``fields``: field names and the rules of `NAMES` for their values."""

    name: str
    one: str
    many: str
    fields: tuple[tuple[str, str], ...]


_APPS = (
    _App("ledger", "entry", "entries", (("payee", "firm"), ("amount", "money"), ("note", "heirloom"))),
    _App("depot", "parcel", "parcels", (("sender", "firm"), ("street", "street"), ("shelf", "locker"))),
    _App("jukebox", "track", "tracks", (("title", "novel"), ("artist", "band"), ("length", "wake"))),
    _App("larder", "item", "items", (("label", "dish"), ("allergen", "allergen"), ("price", "money"))),
    _App("roster", "shift", "shifts", (("worker", "surname"), ("place", "place"), ("starts", "wake"))),
    _App("atlas", "route", "routes", (("from_town", "place"), ("to_town", "place"), ("peak", "peak"))),
    _App("postbox", "letter", "letters", (("from_name", "surname"), ("subject", "thesis"), ("town", "city"))),
    _App("garage", "vehicle", "vehicles", (("model", "car"), ("owner", "boss"), ("bay", "locker"))),
)

_Exchange = tuple[str, str, str]  # thought, action, output


def iter_steps(seed: int | str, tokens: int) -> Iterator[Step]:
    """Steps numbered from 1 that make units of about ``tokens`` tokens in all (within 5 % from 1,000 on, units' headers
    not counted), each made when it is asked for; at least one.

    Equal arguments give equal steps on every machine. An agent signs in, reads documentation, pages through lists,
    looks at records, adds up and changes them, and now and then runs into an error.
    """
    agent = _Agent(Draw("steps", seed))
    left = tokens
    number = 0
    while number == 0 or left > _ROOM_ENOUGH:
        number += 1
        thought, action, output = agent.act(left)
        yield Step(number, action, output, thought)
        left -= _STEP_LABELS + sum(map(counting.count, (thought, action, output)))


class _Agent:
    """Works through one app after the other. What it keeps is bounded: a queue of moves and the latest record ids."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.app = _APPS[0]
        self.page, self.page_limit = 0, _PAGE_LIMITS[0]
        self.ids: deque[int] = deque(maxlen=30)
        self.moves: deque[str] = deque()

    def act(self, room: int) -> _Exchange:
        """The next step, of at most about ``room`` tokens."""
        if room < _LARGE_STEP:
            thought, action, output = self.remember()
            return "", action, output
        if not self.moves:
            self.next_app()
        if self.draw.chance(_ERROR_RATE):
            thought, action, output = self.fail()
        else:
            thought, action, output = getattr(self, self.moves.popleft())(room)
        return thought if self.draw.chance(_THOUGHT_RATE) else "", action, output

    def next_app(self) -> None:
        """Turn to another app: read how it works, sign in, page through a list, then some other moves."""
        self.app = self.draw.pick([app for app in _APPS if app is not self.app])
        self.page, self.page_limit = 0, self.draw.pick(_PAGE_LIMITS)
        self.ids.clear()
        self.moves.extend(("documentation", "sign_in"))
        self.moves.extend(["listing"] * self.draw.between(1, 6))
        for _ in range(self.draw.between(1, 4)):
            self.moves.append(self.draw.pick(("show", "change", "total", "search")))

    # ------------------------------------------------------------ moves: thought, action, output

    def documentation(self, room: int) -> _Exchange:
        """Read the descriptions of the app's calls. Only lists heed ``room``, the tokens left."""
        app = self.app
        calls = {
            f"list_{app.many}": ["access_token", "page_index", "page_limit"],
            f"show_{app.one}": ["access_token", f"{app.one}_id"],
            f"update_{app.one}": ["access_token", f"{app.one}_id", *(name for name, _ in app.fields)],
            f"search_{app.many}": ["access_token", "query", "page_index"],
            "sign_in": ["username", "password"],
        }
        described = [
            {"call": call, "parameters": parameters, "returns": "list" if "page_index" in parameters else "object"}
            for call, parameters in calls.items()
        ]
        return (
            f"Before I touch the {app.name} I should read how its calls work.",
            f"print(apis.manual.describe_app(app_name='{app.name}'))",
            _show(described),
        )

    def sign_in(self, room: int) -> _Exchange:
        """Get a token."""
        app = self.app
        secret = "".join(self.draw.pick("abcdefghjkmnpqrstuvwxyz23456789") for _ in range(24))
        action = (
            f"login = apis.{app.name}.sign_in(username='{value(self.draw, 'surname').lower()}', "
            f"password=secrets['{app.name}'])\n{app.name}_token = login['access_token']\nprint(login)"
        )
        return f"I need a token for the {app.name}.", action, _show({"access_token": secret, "token_type": "Bearer"})

    def listing(self, room: int) -> _Exchange:
        """The next page of the app's records; the last page, and one with little room, is shorter."""
        app = self.app
        page, self.page = self.page, self.page + 1
        last = "listing" not in self.moves
        size = self.draw.between(1, self.page_limit) if last else self.page_limit
        size = min(size, max(1, (room - 100) // _RECORD_TOKENS))
        action = (
            f"page_{page} = apis.{app.name}.list_{app.many}(access_token={app.name}_token, "
            f"page_index={page}, page_limit={self.page_limit})\nprint(page_{page})"
        )
        thought = f"There may be more {app.many}; page {page} next."
        return thought, action, _show([self.record() for _ in range(size)])

    def show(self, room: int) -> _Exchange:
        """Look at one record, known where one has been seen."""
        app, known = self.app, self.known_id()
        action = f"print(apis.{app.name}.show_{app.one}(access_token={app.name}_token, {app.one}_id={known}))"
        record = {**self.record(), f"{app.one}_id": known, "history": [self.stamp() for _ in range(3)]}
        return f"Let me look at {app.one} {known} closely.", action, _show(record)

    def change(self, room: int) -> _Exchange:
        """Set a field of one record."""
        app, known = self.app, self.known_id()
        field, rule = self.draw.pick(app.fields)
        action = (
            f"result = apis.{app.name}.update_{app.one}(\n    access_token={app.name}_token,\n"
            f"    {app.one}_id={known},\n    {field}={value(self.draw, rule)!r},\n)\nprint(result)"
        )
        output = _show({"message": f"{app.one.capitalize()} updated.", f"{app.one}_id": known, "updated": self.stamp()})
        return f"The {field} of {app.one} {known} has to be corrected.", action, output

    def total(self, room: int) -> _Exchange:
        """Count values over the latest page."""
        app = self.app
        field = app.fields[0][0]
        action = (
            f"counts = {{}}\nfor record in page_{max(0, self.page - 1)}:\n"
            f"    counts[record['{field}']] = counts.get(record['{field}'], 0) + 1\n"
            "for name, number in sorted(counts.items()):\n    print(number, name)"
        )
        names = [value(self.draw, app.fields[0][1]) for _ in range(self.draw.between(1, 6))]
        output = "\n".join(f"{self.draw.between(1, 9)} {name}" for name in sorted(names))
        return f"How often does each {field} occur?", action, output

    def search(self, room: int) -> _Exchange:
        """Search for a value; finds few records or none."""
        app = self.app
        wanted = value(self.draw, app.fields[0][1])
        action = (
            f"print(apis.{app.name}.search_{app.many}(access_token={app.name}_token, query={wanted!r}, page_index=0))"
        )
        size = self.draw.below(min(4, max(1, (room - 100) // _RECORD_TOKENS)))
        found = [{**self.record(), app.fields[0][0]: wanted} for _ in range(size)]
        return f"Searching for {wanted} is faster than paging.", action, _show(found)

    def remember(self) -> _Exchange:
        """A short step."""
        known = self.known_id()
        return f"I'll note {known}.", f"chosen = {known}\nprint(chosen)", f"{known}"

    def fail(self) -> _Exchange:
        """A step that goes wrong; the move that was next stays next."""
        app, known = self.app, self.known_id()
        line = self.draw.between(1, 9)
        kind = self.draw.below(4)
        if kind == 0:
            action = f"print(apis.{app.name}.show_{app.one}({app.one}_id={known}))"
            output = _show({"status": 401, "message": "You are either not signed in or the access token has expired."})
        elif kind == 1:
            action = f"print(page_{self.page}[{line}]['{app.fields[-1][0]}_value'])"
            output = _trace(line, action, f"KeyError: '{app.fields[-1][0]}_value'")
        elif kind == 2:
            action = f"print(apis.{app.name}.get_{app.many}(access_token={app.name}_token))"
            output = _trace(line, action, f"AttributeError: no call named 'get_{app.many}' in the {app.name} app")
        else:
            action = f"print(apis.{app.name}.show_{app.one}(access_token={app.name}_token, {app.one}_id='{known}'))"
            problem = {"loc": [f"{app.one}_id"], "msg": "value is not a valid integer", "type": "type_error.integer"}
            output = _show({"status": 422, "message": "Validation error.", "errors": [problem]})
        return "This should work, as far as the documentation says.", action, output

    # ------------------------------------------------------------ data

    def record(self) -> dict[str, Any]:
        """A record of the app, drawn; its id is remembered."""
        number = self.draw.between(1_000, 99_999)
        self.ids.append(number)
        fields = {name: value(self.draw, rule) for name, rule in self.app.fields}
        return {f"{self.app.one}_id": number, **fields, "created": self.stamp()}

    def known_id(self) -> int:
        """An id seen lately, else any."""
        return self.draw.pick(self.ids) if self.ids else self.draw.between(1_000, 99_999)

    def stamp(self) -> str:
        """A moment, drawn."""
        draw = self.draw
        day = f"20{draw.between(19, 25)}-{draw.between(1, 12):02d}-{draw.between(1, 28):02d}"
        return f"{day}T{draw.below(24):02d}:{draw.below(60):02d}:{draw.below(60):02d}"


def _show(content: object) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False)


def _trace(line: int, action: str, error: str) -> str:
    return f'Traceback (most recent call last):\n  File "<step>", line {line}, in <module>\n    {action}\n{error}'
