"""``observation_masking``: thoughts and actions stay, old outputs become a line (docs/methods.md B.1)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexmem import tokens
from flexmem.contract.cases import trajectories
from flexmem.history import Step, Unit, pack_steps
from flexmem.memory.protocol import Rendering, Resolution
from tests.memory.examples import compass_query, shown, words, written

QUERY = compass_query("Where?", "north")
PLACEHOLDER = Resolution.PLACEHOLDER


def units_of(number: int, thought: str = "", limit: int = 10) -> list[Unit]:
    """Steps of one action and an output of two lines; with the small limit each is a unit by itself."""
    steps = [Step(n, "red", f"{words(9)}\n{words(10)}", thought) for n in range(1, number + 1)]
    return pack_steps(steps, history="h", limit=limit)


def outputs_shown(rendering: Rendering) -> list[int]:
    """Units whose output is shown, by their `Output:` lines."""
    return [
        block.uids[0] for block in rendering.blocks if rendering.text[block.start : block.end].startswith("Output:")
    ]


# Four steps, a unit each: header 8; `Step 1`, `Action:` and the action 6 + 2; output 2 + 10 + 11 = 23; 39 in all. With
# `[output omitted: 2 lines]`, 8 tokens, in the output's place a step has 24.
#
# Room 130: all four outputs 156, three 24 + 117 = 141, two 48 + 78 = 126 fit.
UNITS = units_of(4)
ROOM = 130


def masked(step: int) -> str:
    return f"### u{step - 1:02d} — step {step}\nStep {step}\nAction:\nred\n[output omitted: 2 lines]\n"


TEXT = masked(1) + masked(2) + UNITS[2].text + UNITS[3].text


def test_masking_worked_by_hand() -> None:
    assert [unit.tokens for unit in UNITS] == [39] * 4
    rendering = shown(written("observation_masking", UNITS), QUERY, ROOM)
    assert rendering.text == TEXT
    assert rendering.tokens == 126
    assert rendering.tokens_by_resolution() == {"frame": 32, "raw": 32 + 46, "placeholder": 16}
    # Two outputs are not shown, so neither are their pieces; headers belong to no piece.
    build = written("observation_masking", UNITS)
    masked_outputs = {p.index for p in build.pieces if p.uid < 2 and p.text.startswith("Output:")}
    assert rendering.shown_pieces() == {p.index for p in build.pieces} - masked_outputs


def oldest_outputs() -> str:
    """WRONG: the oldest outputs stay."""
    return UNITS[0].text + UNITS[1].text + masked(3) + masked(4)


def the_first_output_too() -> str:
    """WRONG here: SWE-agent's rule keeps the very first output, so one of the newest gives way."""
    return UNITS[0].text + masked(2) + masked(3) + UNITS[3].text


def steps_dropped() -> str:
    """WRONG: whole steps go instead of outputs."""
    return UNITS[1].text + UNITS[2].text + UNITS[3].text


def all_masked() -> str:
    """WRONG: where ten outputs do not fit, none is kept."""
    return "".join(masked(step) for step in (1, 2, 3, 4))


@pytest.mark.parametrize("wrong", [oldest_outputs, the_first_output_too, steps_dropped, all_masked])
def test_the_masking_example_tells_wrong_variants(wrong: Callable[[], str]) -> None:
    assert tokens.count(wrong()) <= ROOM
    assert wrong() != TEXT


def test_at_most_ten_outputs_stay_however_large_the_room() -> None:
    build = written("observation_masking", units_of(13))
    assert outputs_shown(shown(build, QUERY, 10_000)) == list(range(3, 13))
    fewer = written("observation_masking", units_of(13), newest_outputs=2)
    assert outputs_shown(shown(fewer, QUERY, 10_000)) == [11, 12]


def test_where_not_even_the_actions_fit_the_oldest_steps_are_dropped() -> None:
    """Masked, a step has 24: 50 hold two, 47 one, 23 none."""
    build = written("observation_masking", UNITS)
    assert shown(build, QUERY, 50).text == masked(3) + masked(4)
    assert shown(build, QUERY, 47).text == masked(4)
    assert shown(build, QUERY, 23).text == ""


def test_the_placeholder_counts_the_outputs_lines() -> None:
    steps = [Step(1, "a", "x\ny\nz"), Step(2, "b", "x\n"), Step(3, "c", "")]
    build = written("observation_masking", pack_steps(steps, history="h"), newest_outputs=0)
    text = shown(build, QUERY, 1_000).text
    assert [line for line in text.splitlines() if line.startswith("[output")] == [
        "[output omitted: 3 lines]",
        "[output omitted: 1 lines]",
        "[output omitted: 1 lines]",
    ]


def test_a_unit_of_several_steps_has_one_header_even_where_its_first_steps_are_dropped() -> None:
    """Three steps in one unit: header 10, masked steps of 16 each: 44 hold two."""
    (unit,) = units_of(3, limit=1_000)
    build = written("observation_masking", [unit])
    assert shown(build, QUERY, 44).text == (
        "### u00 — steps 1-3\n" + "".join(f"Step {n}\nAction:\nred\n[output omitted: 2 lines]\n" for n in (2, 3))
    )


def test_thoughts_stay_or_in_the_variant_go_with_their_outputs() -> None:
    units = units_of(3, thought="I think.")
    kept = shown(written("observation_masking", units, newest_outputs=1), QUERY, 1_000)
    dropped = shown(written("observation_masking.no_thoughts", units, newest_outputs=1), QUERY, 1_000)
    assert kept.text.count("Thought: I think.\n") == 3
    assert dropped.text.count("Thought: I think.\n") == 1
    assert dropped.text.endswith(units[2].text)


@settings(max_examples=60, deadline=None)
@given(trajectories(), st.integers(0, 500))
def test_the_newest_steps_are_shown_and_of_them_the_newest_outputs(units: list[Unit], room: int) -> None:
    rendering = shown(written("observation_masking", units), QUERY, room)
    all_steps = [block.source for unit in units for block in unit.blocks if block.kind == "output"]
    kinds = [
        block.resolution
        for block in rendering.blocks
        if block.resolution is PLACEHOLDER or rendering.text[block.start : block.end].startswith("Output:\n")
    ]
    assert kinds == sorted(kinds, key=lambda kind: kind is not PLACEHOLDER)  # placeholders first, then outputs
    assert len(kinds) <= len(all_steps)
    assert sum(kind is not PLACEHOLDER for kind in kinds) <= 10
    if len(kinds) < len(all_steps):
        assert all(kind is PLACEHOLDER for kind in kinds)  # steps are dropped only once all outputs are masked
