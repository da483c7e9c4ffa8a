"""A small world in plain Python that speaks as AppWorld does: apps behind ``apis``, documentation, log-ins whose tokens
differ each time, pages, prose, effects that may be repeated and effects that may not.
"""

from __future__ import annotations

import builtins
import io
import json
import traceback
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from random import Random
from typing import Any

from flexmem.agents.context_bound.plan import Conventions

CONVENTIONS = Conventions(
    document='print(apis.api_docs.show_api_doc(app_name="{app}", api_name="{function}"))',
    listing='print([one["name"] for one in apis.api_docs.show_api_descriptions(app_name="{app}")])',
    exempt=frozenset({"api_docs", "supervisor"}),
    failure=r"Execution failed|Response status code is [45]\d\d",
    harmless=r"already",
)

_FUNCTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "shop": {
        "login": ("username", "password"),
        "search_goods": ("query", "page_index", "page_limit", "access_token"),
        "show_good": ("good_id", "access_token"),
        "like_good": ("good_id", "access_token"),
        "pay": ("email", "amount", "access_token"),
    },
    "notes": {
        "login": ("username", "password"),
        "search_notes": ("page_index", "page_limit", "access_token"),
        "show_note": ("note_id", "access_token"),
        "append": ("note_id", "text", "access_token"),
    },
}
_WORDS = [
    "the",
    "lamp",
    "is",
    "of",
    "brass",
    "and",
    "stands",
    "by",
    "a",
    "window",
    "where",
    "nobody",
    "looks",
    "at",
    "it",
    "before",
    "the",
    "evening",
    "comes",
]


@dataclass
class Toy:
    """One task's world. ``state`` is what a checker looks at: what was liked, paid and written, and the answer."""

    goods: int = 23
    notes: int = 9
    state: dict[str, Any] = field(default_factory=lambda: {"liked": [], "paid": [], "added": [], "answer": None})
    done: bool = False
    executed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._tokens: dict[str, str] = {}
        self._logins = 0
        self._names: dict[str, Any] = {"apis": _Apis(self), "print": _print, "json": json}

    def execute(self, code: str) -> str:
        """Run a cell; variables persist."""
        self.executed.append(code)
        said = io.StringIO()
        try:
            with redirect_stdout(said):
                exec(compile(code, "<python-input>", "exec"), self._names)
        except Exception:  # noqa: BLE001 - told as the world's output
            lines = traceback.format_exc().splitlines()
            return "Execution failed. Traceback:\n" + "\n".join([f"    {code}", *lines[-3:]])
        return said.getvalue() or "Execution successful."

    def call(self, app: str, function: str, values: dict[str, Any]) -> Any:
        """An API call."""
        if app == "supervisor":
            return self._supervisor(function, values)
        if app == "api_docs":
            return _documentation(function, values)
        if function == "login":
            self._logins += 1
            token = f"eyJ{app}.{Random(f'{app}/{self._logins}').randbytes(24).hex()}.end"
            self._tokens[token] = app
            return {"access_token": token, "token_type": "Bearer"}
        if self._tokens.get(values.pop("access_token", "")) != app:
            raise RuntimeError("Response status code is 401:\nnot logged in")
        handler: Callable[..., Any] = getattr(self, f"_{function}")
        return handler(**values)

    def _supervisor(self, function: str, values: dict[str, Any]) -> Any:
        if function == "show_profile":
            return {"first_name": "Ada", "email": "ada@example.com"}
        if function == "show_account_passwords":
            return [{"account_name": app, "password": f"{app}-pw"} for app in _FUNCTIONS]
        self.done = True
        self.state["answer"] = values.get("answer")
        return {"message": "done"}

    def _search_goods(self, query: str, page_index: int, page_limit: int) -> Any:
        rows = [
            {"good_id": 100 + n, "title": f"Lamp {n} {_WORDS[n % 17]}", "price": n * 7 % 13, "text": _prose(n, 18)}
            for n in range(self.goods)
        ]
        return rows[page_index * page_limit :][:page_limit]

    def _show_good(self, good_id: int) -> Any:
        number = good_id - 100
        return {"good_id": good_id, "seller": {"email": f"seller{number}@example.com"}, "text": _prose(number, 40)}

    def _like_good(self, good_id: int) -> Any:
        if good_id in self.state["liked"]:
            raise RuntimeError("Response status code is 422:\nYou like it already.")
        self.state["liked"].append(good_id)
        return {"message": "liked"}

    def _pay(self, email: str, amount: float) -> Any:
        self.state["paid"].append([email, amount])
        return {"message": "paid", "payment_id": len(self.state["paid"])}

    def _search_notes(self, page_index: int, page_limit: int) -> Any:
        rows = [{"note_id": 7 * n, "title": f"Note {n}", "added": self._added(7 * n)} for n in range(self.notes)]
        return rows[page_index * page_limit :][:page_limit]

    def _show_note(self, note_id: int) -> Any:
        number = note_id // 7
        content = (
            f'{_prose(number, 20)}\nThe "tall" one cost ${number + 3}.25 in the café, and was paid by Bram {number}.'
        )
        return {"note_id": note_id, "content": f"{content}\n{_prose(number + 1, 20)}"}

    def _append(self, note_id: int, text: str) -> Any:
        self.state["added"].append([note_id, text])
        return {"message": "added"}

    def _added(self, note_id: int) -> int:
        return sum(note == note_id for note, _ in self.state["added"])


class _Apis:
    def __init__(self, world: Toy) -> None:
        self._world = world

    def __getattr__(self, app: str) -> _App:
        return _App(self._world, app)


class _App:
    def __init__(self, world: Toy, app: str) -> None:
        self._world, self._app = world, app

    def __getattr__(self, function: str) -> Callable[..., Any]:
        return lambda **values: self._world.call(self._app, function, values)


def _documentation(function: str, values: dict[str, Any]) -> Any:
    functions = _FUNCTIONS[values["app_name"]]
    if function == "show_api_descriptions":
        return [{"name": name, "description": f"It does what {name} says."} for name in functions]
    name = values["api_name"]
    method = "GET" if name.startswith(("show", "search")) else "POST"
    return {
        "app_name": values["app_name"],
        "api_name": name,
        "method": method,
        "description": _prose(len(name), 25),
        "parameters": [{"name": one, "type": "string", "required": True} for one in functions[name]],
    }


def _prose(number: int, words: int) -> str:
    rng = Random(number)
    return " ".join(rng.choice(_WORDS) for _ in range(words))


def _print(*values: Any) -> None:
    """As AppWorld's: one list or object is printed as JSON, indented where it is long."""
    if len(values) == 1 and isinstance(values[0], list | tuple | dict):
        text = json.dumps(values[0])
        builtins.print(json.dumps(values[0], indent=1) if len(text) >= 100 else text)
    else:
        builtins.print(*values)
