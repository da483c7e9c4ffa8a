"""Whether a context shows what a step needs (docs/context-agent.md).

Names, earlier uses and marks count in any text, whatever lines a method puts around them: an agent acts on a note that
says ``x_token = apis.x.login(…)``, because the variable lives on. Values and documentation count only word for word:
nobody rebuilds an amount, or a parameter's name, that is nowhere.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from flexmem.agents.context_bound.needs import Api
from flexmem.agents.context_bound.plan import Conventions, Mark, Value

_CALL = re.compile(r"apis\.(\w+)\.(\w+)\(")
_DOCUMENT = re.compile(r"[\"']api_name[\"']:\s*[\"'](\w+)[\"']")
_APP_BEFORE = re.compile(r"[\"']app_name[\"']:\s*[\"'](\w+)[\"'],?\s*$")
_NAMED = re.compile(r"[\"']name[\"']:\s*[\"'](\w+)[\"']")
_ASSIGNED = re.compile(r"[ \t]*=(?!=)")
_BEFORE_ARGUMENT = frozenset("(,=*")
_NEAR = 64  # characters before a document's name in which its app's name stands

Scalar = str | int | float


class Seen(NamedTuple):
    """A value as a context shows it: word for word, and what it means."""

    text: str
    value: Scalar


class _Call(NamedTuple):
    function: str
    text: str  # from its opening bracket to the end of the line or the next call
    failed: bool


class Sight:
    """One context, looked at for what it shows; each look is made once."""

    def __init__(self, text: str, conventions: Conventions) -> None:
        self._text = text
        self._conventions = conventions
        self._names: dict[str, bool] = {}
        self._values: dict[str, Seen | None] = {}
        self._made: dict[tuple[str, str], list[_Call]] | None = None
        self._documents: list[tuple[str, str | None, frozenset[str]]] | None = None

    def name(self, name: str) -> bool:
        """Whether a variable stands in any text as the target of an assignment or as an argument of a call."""
        if name not in self._names:
            self._names[name] = any(self._is_variable(start, start + len(name)) for start in self._words(name))
        return self._names[name]

    def word(self, word: str) -> bool:
        """Whether a word stands anywhere."""
        return next(self._words(word), None) is not None

    def value(self, value: Value) -> Seen | None:
        """A value with what identifies it, word for word; None where it is not shown, or cut."""
        if value.key not in self._values:
            match = _pattern(value.shown).search(self._text)
            self._values[value.key] = None if match is None else Seen(match[1], decode(match[1], value.form))
        return self._values[value.key]

    def used(self, api: Api) -> bool:
        """Whether an earlier call of the function stands in any text."""
        return (api.app, api.function) in self._calls

    def documented(self, api: Api) -> bool:
        """Whether the function's documentation is shown with every keyword that the step uses."""
        return any(
            function == api.function and app in (None, api.app) and keywords.issuperset(api.keywords)
            for function, app, keywords in self._documentation
        )

    def mark(self, mark: Mark) -> bool:
        """Whether the agent's own call stands in any text, and no failure beside its last appearance."""
        wanted = [_argument(argument) for argument in mark.arguments]
        made = self._calls.get((mark.app, mark.function), [])
        own = [call for call in made if all(argument.search(call.text) for argument in wanted)]
        return bool(own) and not own[-1].failed

    def _words(self, word: str) -> Iterator[int]:
        """Where a word stands that is no part of a longer one."""
        text = self._text
        start = text.find(word)
        while start >= 0:
            end = start + len(word)
            if not (_in_word(text, start - 1) or _in_word(text, end)):
                yield start
            start = text.find(word, end)

    def _is_variable(self, start: int, end: int) -> bool:
        text = self._text
        before = start - 1
        while before >= 0 and text[before] in " \t\n":
            before -= 1
        if before >= 0 and text[before] in _BEFORE_ARGUMENT:
            return True
        attribute_or_key = start > 0 and text[start - 1] in ".\"'"
        return not attribute_or_key and _ASSIGNED.match(text, end) is not None

    @property
    def _calls(self) -> dict[tuple[str, str], list[_Call]]:
        """All calls in the order of the text, by app and function."""
        if self._made is None:
            self._made = {}
            for match, end in _stretches(_CALL, self._text):
                line = self._text.find("\n", match.end(), end)
                text = self._text[match.end() : line if line >= 0 else end]
                failed = self._failed(match.end(), end)
                self._made.setdefault((match[1], match[2]), []).append(_Call(match[2], text, failed))
        return self._made

    def _failed(self, start: int, end: int) -> bool:
        """Whether the text up to the next call tells of a failure that left something to do."""
        text = self._text[start:end]
        harmless = _pattern(self._conventions.harmless)
        return tells_failure(text, self._conventions) and harmless.search(text) is None

    @property
    def _documentation(self) -> list[tuple[str, str | None, frozenset[str]]]:
        """Function, app where it stands directly before, and the names in the text up to the next document."""
        if self._documents is None:
            self._documents = []
            for match, end in _stretches(_DOCUMENT, self._text):
                app = _APP_BEFORE.search(self._text, max(0, match.start() - _NEAR), match.start())
                named = frozenset(name[1] for name in _NAMED.finditer(self._text, match.end(), end))
                self._documents.append((match[1], app[1] if app else None, named))
        return self._documents


def tells_failure(text: str, conventions: Conventions) -> bool:
    """Whether an output tells of a failed call."""
    return _pattern(conventions.failure).search(text) is not None


def decode(text: str, form: str) -> Scalar:
    """The value that a text stands for: a JSON scalar or Python's, or bare text in which JSON may have escaped some."""
    if form == "text":
        escaped = _from_json(f'"{text}"') if "\\" in text else None
        return text if escaped is None else escaped
    found = _from_json(text)
    if found is None:
        found = ast.literal_eval(text)
    assert isinstance(found, str | int | float)
    return found


def _from_json(text: str) -> Scalar | None:
    try:
        found: Scalar = json.loads(text)
    except ValueError:
        return None
    return found


def _stretches(pattern: re.Pattern[str], text: str) -> Iterator[tuple[re.Match[str], int]]:
    """Each match, and where the next one begins, or the text ends."""
    found = list(pattern.finditer(text))
    for number, match in enumerate(found, 1):
        yield match, found[number].start() if number < len(found) else len(text)


def _in_word(text: str, position: int) -> bool:
    return 0 <= position < len(text) and (text[position].isalnum() or text[position] == "_")


@lru_cache(maxsize=1 << 12)
def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.S)


@lru_cache(maxsize=1 << 14)
def _argument(argument: str) -> re.Pattern[str]:
    """An argument as written, whole: one that is cut has no separator behind it."""
    escaped = r"\s+".join(re.escape(word) for word in argument.split())
    return re.compile(rf"(?<![\w.]){escaped}\s*[,);]")
