"""What whoever uses a tool-managed memory has done with it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace


@dataclass
class Desk:
    """``core``: the text that the user of the memory keeps. ``expanded``: units shown whole, the last expanded last.
    ``found``: pieces that the last search shows.
    """

    core: str = ""
    expanded: list[int] = field(default_factory=list)
    found: list[int] = field(default_factory=list)

    def copy(self) -> Desk:
        """One of its own."""
        return replace(self, expanded=list(self.expanded), found=list(self.found))
