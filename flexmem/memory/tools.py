"""Tools that a memory gives to whoever reads it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import ValidationError

from flexmem.memory.asking import ReplyForm, json_schema
from flexmem.memory.protocol import MemoryView


@dataclass(frozen=True)
class Tool:
    """One tool. ``form`` are its arguments; ``run`` takes them and returns one line that says what happened."""

    name: str
    description: str
    form: type[ReplyForm]
    run: Callable[[Any], Awaitable[str]]

    @property
    def parameters(self) -> dict[str, Any]:
        """JSON schema of the arguments."""
        return json_schema(self.form)

    async def call(self, arguments: Mapping[str, Any]) -> str:
        """Run with the given arguments; what is wrong with them is said in the line that comes back, not raised: the
        caller is a model, which can try again.
        """
        try:
            form = self.form.model_validate(dict(arguments), strict=True)
        except ValidationError as error:
            first = error.errors()[0]
            return f"error: argument {'.'.join(map(str, first['loc'])) or 'object'}: {first['msg']}"
        return await self.run(form)


class ToolView(MemoryView, Protocol):
    """A view with tools. What they change is seen at the view's next rendering."""

    def tools(self) -> Sequence[Tool]: ...
