"""Records by rule (docs/methods.md A.8)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexmem.contract.cases import conversations, trajectories
from flexmem.history import Session, Step, Turn, Unit, pack_steps, split_sessions
from flexmem.memory.flexa.records import Record
from flexmem.memory.flexa.rule_writer import RuleWriter, sentences
from tests.memory.examples import history, words


def reader_unit(*turns: tuple[str, ...], date: str | None = "8 May 2023", uid: int = 0) -> Unit:
    """A unit of turns (role, text, speaker if any), the ``uid``-th of as many that are alike."""
    made = tuple(Turn(f"t{n}", *turn) for n, turn in enumerate(turns))  # type: ignore[arg-type]
    return split_sessions([Session(str(n), made, date) for n in range(uid + 1)], history="h", limit=10**6)[uid]


def agent_unit(*steps: tuple[str, ...]) -> Unit:
    """A unit of steps (action, output, thought if any)."""
    (unit,) = pack_steps([Step(n, *step) for n, step in enumerate(steps, 1)], history="h", limit=10**6)
    return unit


def written(unit: Unit, limit: int = 80) -> Record:
    return asyncio.run(RuleWriter(limit, 120).write(unit, None))


# ---------------------------------------------------------------- conversations


def test_a_readers_record_worked_by_hand() -> None:
    """Twelve words. The date takes three, nine are left. Sentences and their content words, with the number of
    sentences that hold them:

    0  Ann likes tea.                            ann 3, likes 2, tea 2      common, 3 words
    1  Ann likes tea.                            the same
    2  Ann bought a green violin yesterday.      ann 3, others 1            rarest, 6 words
    The assistant's sentence is rarer still, but the user's come first. 2 takes six words, 0 the other three.
    """
    unit = reader_unit(
        ("user", "Ann likes tea. Ann likes tea. Ann bought a green violin yesterday."),
        ("assistant", "Extraordinary phosphorescent jellyfish!"),
    )
    assert written(unit, 12).text == "8 May 2023: Ann likes tea. Ann bought a green violin yesterday."


def test_what_no_whole_sentence_fills_goes_to_the_head_of_the_best_one_left() -> None:
    """Ten words: the date three, the violin six, one is left: the first word of the older common sentence."""
    unit = reader_unit(("user", "Ann likes tea. Ann likes tea. Ann bought a green violin yesterday."))
    assert written(unit, 10).text == "8 May 2023: Ann Ann bought a green violin yesterday."


def test_the_assistant_is_quoted_where_the_user_leaves_room() -> None:
    unit = reader_unit(("assistant", "Try the orchard."), ("user", "Where to?"))
    assert written(unit).text == "8 May 2023: Try the orchard. Where to?"


def test_named_speakers_rank_as_users() -> None:
    """Five words beside the date. The assistant's sentence is the rarer one, but a bare role ranks behind; a name does
    not.
    """
    common = ("user", "Talks went on. Talks went on.")
    rare = ("assistant", "Phosphorescent jellyfish glowed there.")
    assert written(reader_unit(common, rare), 8).text == "8 May 2023: Talks went on. Talks went"
    named = (*rare, "Bo")
    assert written(reader_unit(common, named), 8).text == "8 May 2023: Bo: Phosphorescent jellyfish glowed there."


@pytest.mark.parametrize("seed", range(6))
def test_a_readers_record_is_filled_to_the_last_word(seed: int) -> None:
    writer = RuleWriter(80, 120)
    for unit in history(seed, "reader", 60):
        spoken = sum(len(unit.text[block.content_start : block.end].split()) for block in unit.blocks)
        text = asyncio.run(writer.write(unit, None)).text
        assert len(text.split()) == min(80, spoken + 3)
        assert text.startswith(f"{unit.time}: ")


def test_without_a_date_it_begins_with_what_was_said() -> None:
    assert written(reader_unit(("user", "Hello there."), date=None)).text == "Hello there."


def test_idf_runs_over_the_sentences_so_far() -> None:
    """Two words fit. In the first unit both sentences are as rare; after three units about tea, the violin is rarer."""
    unit = reader_unit(("user", "Tea tastes. Violin sounds."), date=None, uid=3)
    earlier = [reader_unit(("user", "Tea tastes. Tea tastes."), date=None, uid=n) for n in range(3)]
    assert written(unit, 2).text == "Tea tastes."
    writer = RuleWriter(2, 120)
    for one in earlier:
        writer.recall(one)
    assert asyncio.run(writer.write(unit, None)).text == "Violin sounds."


def test_recalling_units_gives_the_next_record_as_if_they_had_been_written() -> None:
    units = history(1, "reader", 40)
    one, other = RuleWriter(80, 120), RuleWriter(80, 120)
    for unit in units[:-1]:
        asyncio.run(one.write(unit, None))
        other.recall(unit)
    assert asyncio.run(one.write(units[-1], None)) == asyncio.run(other.write(units[-1], None))


def test_sentences_end_at_stops_and_line_breaks() -> None:
    assert sentences("One. Two!  Three?\nFour\n\nv1.2 stays. 日本。また") == [
        *("One.", "Two!", "Three?", "Four", "v1.", "2 stays.", "日本。", "また")
    ]


# ---------------------------------------------------------------- agents


def test_an_agents_record_is_a_line_a_step_of_call_and_result() -> None:
    unit = agent_unit(("ls data", "a.txt\nb.txt"), ("print(1)", ""))
    assert written(unit).text == "1: ls data -> a.txt b.txt; 2: print(1) -> no output"


def test_comments_fences_and_thoughts_are_skipped() -> None:
    action = "I will log in.\n```python\n# log in\ntoken = api.login('ann')\n// never mind\n```\nDone."
    assert written(agent_unit((action, "ok", "Let me think."))).text == "1: token = api.login('ann') -> ok"


def test_the_last_error_line_wins_over_the_output() -> None:
    output = "Listing all songs now\nError: first\nretrying\nException: no such song in the library\nbye"
    assert written(agent_unit(("play('x')", output))).text == ("1: play('x') -> Exception: no such song in the library")


def test_results_are_content_words() -> None:
    assert written(agent_unit(("x()", "this is the list of songs: alpha"))).text == "1: x() -> list songs: alpha"


def test_call_and_result_have_twelve_words_each() -> None:
    text = written(agent_unit((words(20), words(30)))).text
    call, result = text.removeprefix("1: ").split(" -> ")
    assert call == words(12)
    assert result == words(12)


def test_names_that_a_step_leaves_behind_are_told_unless_the_call_shows_them() -> None:
    code = "token = api.login(" + words(12) + ")\nsong, artist = pick(1)\nif x == 1: pass\ny = 2"
    assert written(agent_unit((code, "ok"))).text.endswith("-> ok [left song, artist, y]")
    assert "[left" not in written(agent_unit(("token = api.login(1)", "ok"))).text
    many = words(12) + "".join(f"\nv{n} = {n}" for n in range(9))
    assert written(agent_unit((many, "ok"))).text.endswith("[left v0, v1, v2, v3]")


def last_step_alone(unit: Unit, steps: Sequence[Step]) -> str:
    """The newest step's line."""
    (alone,) = pack_steps([steps[unit.span[1] - 1]], history="h", limit=10**6)
    return written(alone, 10**6).text


plain = st.sampled_from([words(3), words(14), "x = 1", "Error: no", "y = api.get(2)\nz = 3", "# note\nrun()"])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(plain, plain), min_size=1, max_size=9))
def test_the_newest_step_stays_whole_and_the_beginning_gives_way(shapes: list[tuple[str, str]]) -> None:
    steps = [Step(n, action, output) for n, (action, output) in enumerate(shapes, 1)]
    (unit,) = pack_steps(steps, history="h", limit=10**6)
    text = written(unit).text
    assert text.endswith(last_step_alone(unit, steps))
    whole = written(unit, 10**6).text
    assert whole.endswith(text)
    assert len(text.split()) == min(80, len(whole.split()))


# ---------------------------------------------------------------- both


@settings(max_examples=60, deadline=None)
@given(conversations() | trajectories(), st.integers(1, 90))
def test_a_record_keeps_its_words_and_fields_on_any_text(units: list[Unit], limit: int) -> None:
    writer = RuleWriter(limit, 120)
    for unit in units:
        record = asyncio.run(writer.write(unit, None))
        dated = len(f"{unit.time}:".split()) if unit.time and unit.kind == "reader" else 0
        assert len(record.text.split()) <= max(limit, dated)
        assert record.uid == unit.uid
        assert len(record.keywords) <= 8
        assert len(record.entities) <= 12
        assert all(entity in unit.text for entity in record.entities)


def test_keywords_are_the_highest_in_tf_idf() -> None:
    """Of nine sentences each has its own word, but kettle is in all of them: tf 9, idf ln(1 + 0.5/9.5) = 0.05, 0.46 in
    all; the others have tf 1, idf ln(1 + 8.5/1.5) = 1.90. The violin is named twice, in one sentence.
    """
    said = [f"kettle {word}." for word in ("ant", "bee", "cow", "dog", "elk", "fox", "gnu", "hen")]
    record = written(reader_unit(("user", " ".join([*said, "kettle violin violin."])), date=None))
    assert record.keywords == ("violin", "ant", "bee", "cow", "dog", "elk", "fox", "gnu")


def test_what_is_embedded_is_the_text_and_the_fields() -> None:
    assert Record(0, "Ann sang.", ("song",), ("Ann", "8 May")).index_text == "Ann sang. song Ann 8 May"
