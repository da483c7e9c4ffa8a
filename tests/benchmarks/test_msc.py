"""MSC's files into histories, and what a broken file says."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flexmem.benchmarks import data
from flexmem.benchmarks.msc import corpus, files
from flexmem.benchmarks.msc.corpus import MscConfig, load
from flexmem.benchmarks.protocol import DataError
from flexmem.benchmarks.registry import BenchmarkOptionError, known_files, make_benchmark

SMALL = Path(__file__).parents[1] / "fixtures" / "msc" / "session_3.txt"


def small(**options: Any) -> corpus.Corpus:
    return load(MscConfig(path=str(SMALL), **options))


def test_a_conversation_is_its_sessions_and_asks_nothing() -> None:
    first, second = small().instances
    assert [session.date for session in first.sessions] == ["5 days 3 hours ago", "2 days ago", None]
    assert [session.session_id for session in first.sessions] == ["1", "2", "3"]
    assert first.questions == second.questions == ()
    assert (first.instance_id, second.instance_id) == ("valid_1/1", "valid_2/2")
    assert first.units[0].text == (
        "### u00 — session 1, 5 days 3 hours ago\n"
        "Speaker 1: Hi! I just watered my tomatoes.\n"
        "Speaker 2: Hello. My parrot is loud today.\n"
        "Speaker 1: What is it called?\n"
    )


def test_the_first_speaker_of_a_session_begins_its_rounds() -> None:
    first = small().instances[0]
    roles = [[(turn.turn_id, turn.role) for turn in session.turns] for session in first.sessions]
    assert roles[0] == [("1:1", "user"), ("1:2", "assistant"), ("1:3", "user")]
    assert roles[1] == [("2:1", "user"), ("2:2", "assistant")]  # whoever spoke last before


def test_personas_stand_beside_the_history() -> None:
    first = small().conversations[0]
    assert first.personas[0] == (("I grow tomatoes.", "I am a nurse."), ("I have a parrot.",))
    assert first.personas[2][1] == ("I have a parrot called Rio.",)
    assert len(first.personas) == len(first.instance.sessions)
    assert "nurse" not in "".join(unit.text for unit in first.instance.units)


def test_a_number_in_place_of_a_speaker_is_told() -> None:
    found = small()
    assert found.instances[1].sessions[-1].turns[0].speaker == "Speaker 1"
    assert "1 utterances have a number for their speaker" in "\n".join(found.notes)
    assert len(small(conversations=1).notes) == len(found.notes) - 1


def test_notes_tell_what_was_read() -> None:
    digest = hashlib.sha256(SMALL.read_bytes()).hexdigest()
    assert small().digest == digest
    notes = "\n".join(small().notes)
    assert f"MSC: 2 conversations of 5 sessions from {SMALL}; no licence is stated" in notes
    assert f"what was read has SHA-256 {digest}" in notes


def test_there_is_no_file_for_every_choice() -> None:
    with pytest.raises(DataError, match=r"MSC has no file of last_session 5, part 'train': sessions are 2 to 5"):
        load(MscConfig(last_session=5, part="train"))
    with pytest.raises(DataError, match="no file of last_session 1"):
        load(MscConfig(last_session=1))


def test_a_corpus_is_no_benchmark_but_its_files_are_known() -> None:
    with pytest.raises(BenchmarkOptionError, match="'msc' has no questions"):
        make_benchmark("msc")
    names = [file.name for file in known_files()]
    assert "msc/msc_v0.1.tar.gz" in names
    assert sum(name.startswith("msc/msc_dialogue/") for name in names) == 11


def test_a_file_is_taken_out_of_the_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "own" / "msc" / "msc_v0.1.tar.gz"
    archive.parent.mkdir(parents=True)
    member = files.DIALOGUES[4, "valid"]
    with tarfile.open(archive, "w:gz") as tar:
        info = tarfile.TarInfo(member.name)
        info.size = SMALL.stat().st_size
        tar.addfile(info, io.BytesIO(SMALL.read_bytes()))
    toy = replace(files.ARCHIVE, sha256=hashlib.sha256(archive.read_bytes()).hexdigest())
    monkeypatch.setattr(corpus, "DIALOGUES", {(4, "valid"): replace(member, archive=toy)})
    monkeypatch.setenv("FLEXMEM_DATA", str(tmp_path / "own"))
    monkeypatch.setenv("FLEXMEM_CACHE", str(tmp_path / "cache"))
    assert len(load(MscConfig(last_session=4, part="valid")).instances) == 2
    assert data.locate(member) == data.Found(tmp_path / "cache" / "data" / member.name, "cache")


# ---------------------------------------------------------------- broken files


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metadata": {}}, r"own\.txt: line 1: metadata\.initial_data_id: missing"),
        ({"dialog": []}, r"line 1: dialog: has no utterance"),
        ({"dialog": [{"id": "Speaker 1"}]}, r"line 1: dialog\[0\]\.text: missing"),
        (
            {"dialog": [{"text": "Hi", "id": "Speaker 2"}]},
            r"line 1: dialog\[0\]\.id: 'Speaker 2', where it is the turn of",
        ),
        ({"personas": [[]]}, r"line 1: personas: 1 where two are expected"),
        ({"previous_dialogs": [{"personas": [[], []], "dialog": []}]}, r"previous_dialogs\[0\]\.time_back: missing"),
        ({"previous_dialogs": None}, r"line 1: previous_dialogs: .*list"),
    ],
)
def test_a_malformed_line_is_named_with_its_field(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = tmp_path / "own.txt"
    path.write_text(json.dumps({**json.loads(SMALL.read_text().splitlines()[0]), **change}))
    with pytest.raises(DataError, match=message):
        load(MscConfig(path=str(path)))


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "own.txt").write_text("\n")
    with pytest.raises(DataError, match="has no conversation"):
        load(MscConfig(path=str(tmp_path / "own.txt")))


# ---------------------------------------------------------------- the real files


@pytest.mark.parametrize(
    ("last_session", "part", "conversations", "numbers"),
    [(2, "valid", 500, 43), (2, "test", 501, 29), (3, "valid", 500, 53), (3, "test", 501, 35)],
)
def test_real_files(flexmem_data: Path, last_session: int, part: files.Part, conversations: int, numbers: int) -> None:
    found = load(MscConfig(last_session=last_session, part=part))
    assert len({instance.instance_id for instance in found.instances}) == conversations
    assert {len(instance.sessions) for instance in found.instances} == {last_session}
    assert any(note.startswith(f"{numbers} utterances have a number") for note in found.notes)
    assert not any("No digest" in note for note in found.notes)
