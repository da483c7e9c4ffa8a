"""``tool_memory``: what is shown, what the tools change, and when lines are flushed (docs/methods.md B.7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from flexmem import tokens
from flexmem.contract.cases import services
from flexmem.llm.scripted import ScriptedModel
from flexmem.memory.baselines.tool_memory.build import ToolMemoryBuild
from flexmem.memory.baselines.tool_memory.flushes import Flushed, RuleSummariser, flush
from flexmem.memory.protocol import Budget, MethodError, Rendering, Resolution
from flexmem.memory.registry import find_method
from flexmem.memory.selection import Fragment
from flexmem.memory.tools import ToolView

from ..examples import chat, clerk, compass_query, history, shown, wait, written

QUERY = compass_query("Where?", "north")
UNITS = chat(["red north"], ["blue east"], ["green"], ["one two"])
RECORDS = ("red", "blue", "green", "one")


def built(records: Sequence[str] = RECORDS, **options: Any) -> ToolMemoryBuild:
    build = written("tool_memory", UNITS[: len(records)], model=clerk(records), **options)
    assert isinstance(build, ToolMemoryBuild)
    return build


def use(view: ToolView, name: str, **arguments: object) -> str:
    (tool,) = [tool for tool in view.tools() if tool.name == name]
    return wait(tool.call(arguments))


def now(view: ToolView, budget: int = 1_000) -> Rendering:
    return wait(view.render(QUERY, Budget(budget)))


def test_units_are_hidden_behind_their_records_until_they_are_expanded() -> None:
    view = built().view()
    assert now(view).text == (
        "# Stored units\n"
        "[u00 | session 1] red (hidden; memory_expand 0)\n"
        "[u01 | session 2] blue (hidden; memory_expand 1)\n"
        "[u02 | session 3] green (hidden; memory_expand 2)\n"
        "[u03 | session 4] one (hidden; memory_expand 3)\n"
    )
    assert use(view, "memory_expand", unit_id=1) == "u01 is shown whole, as far as there is room"
    assert now(view).text == (
        "# Stored units\n"
        "[u00 | session 1] red (hidden; memory_expand 0)\n"
        "### u01 — session 2\nAnn: blue east\n"
        "[u02 | session 3] green (hidden; memory_expand 2)\n"
        "[u03 | session 4] one (hidden; memory_expand 3)\n"
    )
    assert use(view, "memory_fold", unit_id=1) == "u01 is hidden; its line stays"
    assert "### u01" not in now(view).text


def test_a_search_shows_its_page_and_the_next_one_replaces_it() -> None:
    view = built(page_size=1).view()
    assert use(view, "memory_search", query="north", page=0) == "1 passages of u00 are shown; page 0 of 4"
    assert now(view).text.endswith("# Search results\n### u00 — session 1\nAnn: red north\n")
    use(view, "memory_search", query="east", page=0)
    assert now(view).text.endswith("# Search results\n### u01 — session 2\nAnn: blue east\n")
    assert use(view, "memory_search", query="east", page=9) == "nothing on page 9; there are 4 pages, from 0"
    assert "# Search results" not in now(view).text


def test_the_core_block_has_a_limit_and_stands_first() -> None:
    view = built(core_characters=20).view()
    assert use(view, "core_append", text="Ann likes\nred") == "core memory: 13 of 20 characters"
    assert use(view, "core_append", text="and blue, too") == (
        "error: the core memory would have 27 characters, 20 is its limit; replace something"
    )
    assert now(view).text.startswith("# Core memory\n- Ann likes red\n# Stored units\n")
    assert use(view, "core_replace", old="red", new="blue") == "core memory: 14 of 20 characters"
    assert use(view, "core_replace", old="red", new="x") == "error: argument old: the core memory has no such text"
    assert "- Ann likes blue\n" in now(view).text


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("memory_expand", {"unit_id": 7}, "error: there is no unit 7; units 0 to 3 are stored"),
        ("memory_expand", {"unit_id": "u01"}, "error: argument unit_id: Input should be a valid integer"),
        ("memory_expand", {}, "error: argument unit_id: Field required"),
        ("memory_fold", {"unit_id": 2}, "error: u02 is not expanded"),
        ("memory_search", {"query": "north", "page": -1}, "error: argument page: pages count from 0"),
    ],
)
def test_a_wrong_call_says_what_is_wrong_and_changes_nothing(name: str, arguments: dict[str, Any], said: str) -> None:
    view = built().view()
    before = now(view)
    assert use(view, name, **arguments) == said
    assert now(view) == before


def test_a_readers_desk_is_its_own() -> None:
    build = built()
    first = build.view()
    use(first, "memory_expand", unit_id=1)
    use(first, "core_append", text="note")
    assert now(build.view()).text == now(built().view()).text


def test_an_agents_desk_lasts_with_the_build_and_its_state() -> None:
    units = history(3, "agent", 12)
    model = ScriptedModel("stated_length")
    build = written("tool_memory", units, model=model)
    use(build.view(), "core_append", text="note")  # type: ignore[arg-type]
    use(build.view(), "memory_expand", unit_id=1)  # type: ignore[arg-type]
    assert shown(build, QUERY, 3_000).text.startswith("# Core memory\n- note\n")
    other = find_method("tool_memory").configured().build(services(model))
    wait(other.restore(build.state()))
    assert shown(other, QUERY, 3_000) == shown(build, QUERY, 3_000)


def test_the_reader_is_warned_from_three_quarters_of_the_budget() -> None:
    lines = now(built().view())
    for total, warned in ((lines.tokens * 2, False), (round(lines.tokens / 0.75) - 1 + 60, False)):
        assert ("[memory pressure" in now(built().view(), total).text) == warned
    window = Budget(1_000, 700)  # 700 of the window and the lines' tokens are more than 750
    text = wait(built().view().render(QUERY, window)).text
    assert text.endswith("use; fold what is not needed and keep what matters in core memory]\n")
    assert "more than 75 % of 1000 tokens" in text


# Lines of 10 tokens each, limit 35, the newest 1 kept; the summary's line, "[u00-u02 | summary] s", has 9.
#   u0..u2   30 in all: within 35
#   u3       40: u0 to u2 are folded, u3 stays: 9 + 10
#   u4       29: within
#   u5       39: u3 and u4 are folded into the summary, u5 stays: 9 + 10
#   u6       29: within
# A flush that looked at the end alone would fold u0 to u5 at once; one that keeps 2 would first fold u0 and u1 only.
LINES = [Fragment(f"[u0{n}] x\n", 10, (n,), Resolution.RECORD) for n in range(7)]


class Folding:
    """Notes what is folded into what."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[str]]] = []

    async def fold(self, summary: str, records: Sequence[str]) -> str:
        self.calls.append((summary, list(records)))
        return "s"


def flushed(keep: int = 1, at_the_end: bool = False) -> tuple[Flushed, list[tuple[str, list[str]]]]:
    state, folding = Flushed(), Folding()
    records = [f"r{n}" for n in range(7)]
    for seen in [7] if at_the_end else range(1, 8):
        wait(flush(state, LINES[:seen], records, 35, keep, folding))
    return state, folding.calls


def test_flushing_worked_by_hand() -> None:
    expected = [("", ["r0", "r1", "r2"]), ("s", ["r3", "r4"])]
    for at_the_end in (False, True):  # a finished history is flushed as if it had been read as it came
        state, calls = flushed(at_the_end=at_the_end)
        assert calls == expected
        assert (state.units, state.text, state.seen) == (5, "s", 7)


def test_the_flush_example_tells_wrong_variants() -> None:
    assert flushed(keep=2)[1] != flushed()[1]
    state = Flushed(seen=6)  # looks at the end alone
    folding = Folding()
    wait(flush(state, LINES, [f"r{n}" for n in range(7)], 35, 1, folding))
    assert folding.calls == [("", ["r0", "r1", "r2", "r3", "r4", "r5"])] != flushed()[1]


def test_what_is_flushed_is_shown_as_one_line_and_can_still_be_expanded() -> None:
    build = built(keep_last=1, flush_share=0.25)
    view = build.view()
    rendering = now(view, 120)
    assert rendering.text.splitlines()[1].startswith("[u00-u")
    assert "| summary] one" in rendering.text
    use(view, "memory_expand", unit_id=0)
    assert "### u00 — session 1\nAnn: red north\n" in now(view, 120).text


def test_the_same_budget_is_flushed_once_and_another_anew() -> None:
    model = ScriptedModel("stated_length")
    build = written("tool_memory", history(2, "reader", 60), model=model)
    calls = model.calls.total()
    shown(build, QUERY, 800)
    first = model.calls.total() - calls
    assert first > 0
    shown(build, QUERY, 800)
    assert model.calls.total() == calls + first
    shown(build, QUERY, 1_600)
    assert model.calls.total() > calls + first


def test_by_rule_no_model_is_needed_and_by_model_one_is() -> None:
    build = written("tool_memory", UNITS, writer="rule")
    assert shown(build, QUERY, 400).tokens == tokens.count(shown(build, QUERY, 400).text)
    assert not find_method("tool_memory").configured({"writer": "rule"}).info.writes_with_model
    with pytest.raises(MethodError, match="needs a memory model"):
        written("tool_memory", UNITS)


def test_a_rules_summary_counts_the_old_one_as_one_more_record() -> None:
    assert wait(RuleSummariser(4).fold("", ["a b c", "d e f"])).split()[:1] == ["a"]
    assert "old" in wait(RuleSummariser(30).fold("old text", ["a b c"]))
