"""Sentences out of templates: a small context-free grammar whose rules are lists of texts with ``{names}`` in them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from flexmem.benchmarks.synthetic.draw import Draw

Context = Mapping[str, Sequence[str]]

_NAME = re.compile(r"\{(\w+)\}")
_ARTICLE_BEFORE_VOWEL = re.compile(r"\b([Aa]) (?=[aeiouAEIOU])(?!(?i:uni|use|usual|one\b|eu|ukulele))")
_SENTENCE_START = re.compile(r"^\w|(?<=[?!] )\w")


class _Rule:
    __slots__ = ("alternatives", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        # None: not in the grammar, so it is looked up in the context of each expansion.
        self.alternatives: tuple[str | tuple[str | _Rule, ...], ...] | None = None


class Grammar:
    """Rules by name. In an alternative, ``{name}`` stands for a rule, or for one of the texts that the expansion's
    context lists under that name. Every alternative of a rule is equally likely.
    """

    def __init__(self, rules: Mapping[str, Sequence[str]]) -> None:
        self._rules: dict[str, _Rule] = {}
        for name, alternatives in rules.items():
            self._rule(name).alternatives = tuple(self._compile(text) for text in alternatives)

    def _rule(self, name: str) -> _Rule:
        return self._rules.setdefault(name, _Rule(name))

    def _compile(self, text: str) -> str | tuple[str | _Rule, ...]:
        parts = _NAME.split(text)  # literal, name, literal, name, ..., literal
        if len(parts) == 1:
            return text
        return tuple(
            self._rule(part) if number % 2 else part for number, part in enumerate(parts) if part or number % 2
        )

    def expand(self, name: str, draw: Draw, context: Context | None = None) -> str:
        """A text of the rule ``name``.

        Raises:
            KeyError: no rule and nothing in the context has that name, or one that it uses.
        """
        return _expand(self._rules[name], draw, context or {})

    def sentence(self, name: str, draw: Draw, context: Context | None = None) -> str:
        """As `expand`, made a sentence by `polish`."""
        return polish(self.expand(name, draw, context))


def _expand(rule: _Rule, draw: Draw, context: Context) -> str:
    alternatives = rule.alternatives
    if alternatives is None:
        return draw.pick(context[rule.name])
    chosen = alternatives[int(draw.random() * len(alternatives))]
    if isinstance(chosen, str):
        return chosen
    texts: list[str] = []
    for part in chosen:
        text = part if isinstance(part, str) else _expand(part, draw, context)
        if text in texts and not isinstance(part, str):
            text = _expand(part, draw, context)  # "I'd rather sleep than sleep" is rare then
        texts.append(text)
    return "".join(texts)


def with_articles(text: str) -> str:
    """``a`` made ``an`` before a vowel."""
    return _ARTICLE_BEFORE_VOWEL.sub(r"\1n ", text)


def polish(text: str) -> str:
    """`with_articles`, capitals where sentences begin, and a full stop where there is no end yet."""
    text = _SENTENCE_START.sub(lambda match: match.group().upper(), with_articles(text))
    return text if text[-1] in ".!?" else text + "."
