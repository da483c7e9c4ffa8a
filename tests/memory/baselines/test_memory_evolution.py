"""``memory_evolution``: notes that are added, or rewritten in place (docs/methods.md B.2)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flexmem import tokens
from flexmem.contract.cases import Case, cases, services
from flexmem.history import Unit
from flexmem.llm.errors import ModelError
from flexmem.llm.scripted import ScriptedModel
from flexmem.memory.baselines.memory_evolution import EvolvingNote
from flexmem.memory.prompts import template
from flexmem.memory.protocol import MethodError, Resolution, TaskKind
from flexmem.memory.registry import find_method
from flexmem.ports import ChatRequest
from tests.memory.baselines.obliging import Obliging, as_json, keeps_the_contract, numbers_in, prompt_of, uid_in
from tests.memory.examples import CompassEmbedder, chat, compass_query, shown, wait, words, written

NAMES = ("memory_evolution", "fit_or_degrade.memory_evolution")
RAW, NOTE = Resolution.RAW, Resolution.NOTE

# ---------------------------------------------------------------- four units, worked by hand; one neighbour is shown
#
#   u0  "red north"            no notes yet: ADD    note 0 "first north", to the north
#   u1  "green east"           shown note 0: ADD    note 1 "second east", to the east
#   u2  "blue north" and more  to the north, so note 0 is shown: REWRITE it as "both of them", which points nowhere
#   u3  "two"                  points up, as note 0 does by now: it is shown. The model wants to rewrite note 1, which
#                              it was not shown: so this is a new note 2, "fourth north", and it is counted
#
# Question to the north: note 2 has cosine 1, notes 0 and 1 have 0: by number. By their newest units: u3, u2, u1.
CONTENTS = ["red north", "green east", f"blue north {words(40)}", "two"]
UNITS = chat(*[[text] for text in CONTENTS])
REPLIES = [
    as_json(action="add", note=-1, text="first north"),
    as_json(action="add", note=0, text="second east"),
    as_json(action="rewrite", note=0, text="both\nof  them"),
    as_json(action="rewrite", note=1, text="fourth north"),
]
NOTES = [
    EvolvingNote("both of them", (0, 2)),
    EvolvingNote("second east", (1,)),
    EvolvingNote("fourth north", (3,)),
]
RANKING = [3, 2, 1]
QUERY = compass_query("What is in the north?", "north")
LINES = {
    1: "[u01 | session 2] second east\n",
    2: "[u00 to u02 | session 3] both of them\n",
    3: "[u03 | session 4] fourth north\n",
}


def scripted(request: ChatRequest) -> str:
    return REPLIES[uid_in(prompt_of(request))]


def build_of(
    name: str = "memory_evolution", units: Sequence[Unit] = UNITS, model: ScriptedModel | None = None, **options: Any
) -> Any:
    return written(name, units, model=model or ScriptedModel(scripted), **{"neighbours": 1, **options})


def test_notes_and_their_ranking_worked_by_hand() -> None:
    build = build_of()
    assert build.notes == NOTES
    assert build.fallbacks == {"rewrite of a note that was not shown, taken as a new note": 1}
    rendering = shown(build, QUERY, 1_000)
    assert list(rendering.ranking) == RANKING
    assert rendering.text == LINES[1] + LINES[2] + LINES[3]
    assert [(block.uids, block.resolution) for block in rendering.blocks] == [
        ((1,), NOTE),
        ((0, 2), NOTE),
        ((3,), NOTE),
    ]


def simulated(in_place: bool = True, reembedded: bool = True, only_shown: bool = True) -> list[int]:
    """The example's rules in plain numbers, with one of them changed: newest units by rank."""
    notes: list[tuple[float, int]] = [(1.0, 0), (0.0, 1)]  # cosine with the question, newest unit
    if in_place:
        notes[0] = (0.0 if reembedded else 1.0, 2)
    else:
        notes.append((0.0, 2))
    if only_shown:
        notes.append((1.0, 3))
    else:
        notes[1] = (1.0, 3)
    return [newest for _, newest in sorted(notes, key=lambda note: -note[0])]


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"in_place": False}, id="a rewritten note stands beside the old one"),
        pytest.param({"reembedded": False}, id="a rewritten note keeps the old one's vector"),
        pytest.param({"only_shown": False}, id="a note is rewritten that was not shown"),
    ],
)
def test_the_example_tells_wrong_variants(wrong: dict[str, bool]) -> None:
    assert simulated() == RANKING
    assert simulated(**wrong) != RANKING


def test_notes_fill_the_room_by_rank() -> None:
    """The best two, u3 and u2, in time order; with a token less the second is passed over, and the third may fit."""
    both = tokens.count(LINES[3]) + tokens.count(LINES[2])
    assert shown(build_of(), QUERY, both).text == LINES[2] + LINES[3]
    assert tokens.count(LINES[1]) < tokens.count(LINES[2])
    assert shown(build_of(), QUERY, both - 1).text == LINES[1] + LINES[3]


def test_a_best_note_larger_than_the_room_is_cut_at_its_end() -> None:
    build = build_of(units=UNITS[:1], model=ScriptedModel([as_json(action="add", note=-1, text=words(40))]))
    rendering = shown(build, QUERY, 20)
    whole = f"[u00 | session 1] {words(40)}\n"
    assert rendering.text.removesuffix("\n") == whole[: len(rendering.text) - 1]
    assert 15 < rendering.tokens <= 20


def test_new_notes_are_cut_at_80_words_and_rewritten_ones_at_150() -> None:
    script = [as_json(action=action, note=0, text=words(200)) for action in ("add", "rewrite")]
    build = build_of(units=UNITS[:2], model=ScriptedModel(script))
    assert build.notes == [EvolvingNote(words(150), (0, 1))]
    assert build_of(units=UNITS[:1], model=ScriptedModel(script)).notes == [EvolvingNote(words(80), (0,))]


def test_the_model_is_shown_the_unit_and_the_nearest_notes_with_their_ids() -> None:
    model = ScriptedModel(scripted)
    build_of(model=model, neighbours=2)
    first, *_, last = map(prompt_of, model.requests)
    assert "with its id (none yet)" in first
    assert "Notes:\n(none)\n" in first
    assert UNITS[0].text in first
    assert "with its id (0, 1)" in last
    assert "Note 0: both of them\nNote 1: second east\n" in last
    assert "at most 80 words" in last
    assert "at most 120 words" in last
    assert UNITS[3].text in last
    assert set(template("memory_evolution_write").get_identifiers()) == {
        "ids",
        "words",
        "rewritten_words",
        "notes",
        "unit",
    }


# ---------------------------------------------------------------- models that are no help


@pytest.mark.parametrize("rule", ["garbage", "refuse"])
def test_without_usable_replies_a_units_own_first_words_are_its_note(rule: str) -> None:
    build = build_of(model=ScriptedModel(rule), note_words=2)
    assert [note.text for note in build.notes] == ["Ann: red", "Ann: green", "Ann: blue", "Ann: two"]
    assert [note.uids for note in build.notes] == [(0,), (1,), (2,), (3,)]
    assert build.fallbacks == {"note of the unit's own first words, not written by the model": 4}


@pytest.mark.parametrize(
    "unusable",
    [
        as_json(action="delete", note=0, text="x"),
        as_json(action="add", note=0, text=" "),
        as_json(action="add", text="x"),
    ],
)
def test_what_has_another_form_is_asked_for_once_more(unusable: str) -> None:
    build = build_of(units=UNITS[:1], model=ScriptedModel([unusable, REPLIES[0]]))
    assert build.notes == [EvolvingNote("first north", (0,))]
    assert not build.fallbacks


def test_a_failed_embedding_asks_nothing_twice() -> None:
    class Failing(CompassEmbedder):
        fails = True

        async def embed(self, texts: Sequence[str]) -> Any:
            if self.fails and "first north" in texts:
                raise OSError("the embedder failed")
            return await super().embed(texts)

    embedder, model = Failing(), ScriptedModel([REPLIES[0]])
    build = find_method("memory_evolution").configured().build(replace(services(model), embedder=embedder))

    async def write() -> None:
        with pytest.raises(OSError, match="failed"):
            await build.write(UNITS[0])
        embedder.fails = False
        await build.write(UNITS[0])

    asyncio.run(write())
    assert model.calls.total() == 1
    assert shown(build, QUERY, 100).text == "[u00 | session 1] first north\n"


def test_a_failure_of_the_model_is_the_callers() -> None:
    with pytest.raises(ModelError, match="down"):
        build_of(model=ScriptedModel([ModelError("down")]))


@pytest.mark.parametrize("name", NAMES)
def test_it_says_that_it_needs_a_model(name: str) -> None:
    with pytest.raises(MethodError, match="needs a memory model"):
        find_method(name).configured().build(services())


# ---------------------------------------------------------------- fit or degrade


def test_with_fit_or_degrade_a_notes_units_come_back_newest_first() -> None:
    """Candidates: u3, then u2 and u0 of the rewritten note, then u1. In a room of 60: u3 raw has 8 + 2 + 1 + 1 = 12
    tokens, 48 are left; u2 has 8 + 2 + 42 + 1 = 53 and is one piece, so its note's 14 stand there, 34; u0 raw has 13,
    21; u1 raw has 13. In a room of 50, 11 are left for u1: its note has 10.
    """
    for room, last in ((60, RAW), (50, NOTE)):
        rendering = shown(build_of("fit_or_degrade.memory_evolution"), QUERY, room)
        assert rendering.ranking == (3, 2, 0, 1)
        assert [(block.uids, block.resolution) for block in rendering.blocks] == [
            ((0,), RAW),
            ((1,), last),
            ((0, 2), NOTE),
            ((3,), RAW),
        ]
    assert shown(build_of("fit_or_degrade.memory_evolution"), QUERY, 100).text == "".join(unit.text for unit in UNITS)


def test_evidence_is_read_off_where_units_are_shown_raw() -> None:
    assert find_method("memory_evolution").configured().info.rewrites_text
    assert not find_method("fit_or_degrade.memory_evolution").configured().info.rewrites_text


# ---------------------------------------------------------------- state and contract


def test_a_restored_build_has_rewritten_notes() -> None:
    build = build_of()
    other: Any = (
        find_method("memory_evolution")
        .configured({"neighbours": 1})
        .build(replace(services(ScriptedModel(scripted)), embedder=CompassEmbedder()))
    )
    wait(other.restore(build.state()))
    assert other.notes == NOTES
    assert shown(other, QUERY, 1_000) == shown(build, QUERY, 1_000)


def helpful(request: ChatRequest) -> str:
    """Two of three units are worked into a note, the last one shown."""
    shown_ids = numbers_in(request, r"^Note (\d+):")
    prompt = prompt_of(request)
    rewrite = bool(shown_ids) and len(prompt) % 3 > 0
    text = " ".join(["noted", *prompt.split()[-4:]])
    return as_json(action="rewrite" if rewrite else "add", note=shown_ids[-1] if rewrite else -1, text=text)


@pytest.mark.parametrize("kind", ["reader", "agent"])
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_the_contract_holds_with_a_helpful_model(name: str, kind: TaskKind, data: st.DataObject) -> None:
    case: Case = data.draw(cases(kind))
    keeps_the_contract(Obliging(name, helpful), case)
