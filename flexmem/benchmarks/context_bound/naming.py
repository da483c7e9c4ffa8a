"""Names of an agent's variables: in one style a seed, with a tag that nobody can guess."""

from __future__ import annotations

import re
from random import Random

from flexmem.agents.context_bound.variation import NamingStyle

_CONSONANTS = "bdfgklmnprstvz"
_VOWELS = "aeiou"


class Namer:
    """Makes names, each of them once; ``taken`` are words that no name may be part of, or have as a part."""

    def __init__(self, style: NamingStyle, rng: Random, taken: str) -> None:
        self._style = style
        self._rng = rng
        self._taken = taken.lower()
        self._made: list[str] = []

    def name(self, base: str) -> str:
        """A name that reminds of ``base``."""
        while True:
            name = self._styled(base, self._tag())
            clash = any(name in made or made in name for made in self._made)
            if not clash and name.lower() not in self._taken:
                self._made.append(name)
                return name

    def _tag(self) -> str:
        return "".join(self._rng.choice(letters) for letters in (_CONSONANTS, _VOWELS, _CONSONANTS))

    def _styled(self, base: str, tag: str) -> str:
        words: list[str] = re.findall(r"[A-Za-z]+|\d+", base)
        match self._style:
            case "tag last":
                return "_".join([*words, tag])
            case "tag first":
                return "_".join([tag, *words])
            case "camel":
                joined = "".join(word.capitalize() for word in [*words, tag])
                return joined[0].lower() + joined[1:]
