"""Control arms of multiple-choice benchmarks, which answer without a memory and without a model (docs/methods.md E.2b).

Where the right option is mostly the longest one, a reader can score without remembering anything; these arms say how
much.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

CHOICE_CONTROLS: Mapping[str, str] = {
    "always_longest": "answers with the longest option; multiple choice only, no model",
    "length_rule": "answers with the longest or shortest option, as suits the question's type; no model",
    "chance": "scores what guessing would on average; multiple choice only, no model",
}


def reply_by_rule(control: str, options: Sequence[str], length_rule: str) -> str | None:
    """The letter of the option that an arm takes, as ``(b)``; of equally long ones the first. None for ``chance``.

    Args:
        control: one of `CHOICE_CONTROLS`.
        options: the texts to choose from, in order.
        length_rule: ``longest`` or ``shortest``, what ``length_rule`` takes.

    Raises:
        ValueError: no option, or an unknown arm or rule.
    """
    if not options:
        raise ValueError("a question without options has nothing to choose from")
    if control == "chance":
        return None
    rule = "longest" if control == "always_longest" else length_rule
    if control not in CHOICE_CONTROLS or rule not in ("longest", "shortest"):
        raise ValueError(f"no rule {control!r} with {rule!r}")
    lengths = [len(option) for option in options]
    place = lengths.index(max(lengths) if rule == "longest" else min(lengths))
    return f"({chr(ord('a') + place)})"
