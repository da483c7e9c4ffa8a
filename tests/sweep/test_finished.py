"""Keys of finished episodes, against a set of Python's own."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from flexmem.sweep.fingerprint import digest
from flexmem.sweep.finished import FinishedKeys
from flexmem.sweep.plan import make_plan

from .harness import InProcess, rows, sweep

KEYS = [digest(number) for number in range(40)] + ["0" * 32, "f" * 32]
keys = st.lists(st.sampled_from(KEYS))


@settings(deadline=None)
@given(st.lists(keys, max_size=5))
def test_it_is_the_set_of_all_keys_of_all_columns(columns: list[list[str]]) -> None:
    found = FinishedKeys(pa.chunked_array([column], type=pa.string()) for column in columns)
    expected = {key for column in columns for key in column}
    assert len(found) == len(expected)
    assert {key for key in KEYS if key in found} == expected
    assert set(found) == expected
    assert found.nbytes == 32 * len(expected)


def test_chunks_and_slices_of_a_column_count_once() -> None:
    whole = pa.array(KEYS, pa.string())
    found = FinishedKeys([pa.chunked_array([whole.slice(3, 4), whole.slice(5, 6)])])
    assert set(found) == set(KEYS[3:11])


def test_what_no_plan_can_have_is_left_out() -> None:
    found = FinishedKeys([pa.chunked_array([["short", KEYS[0], None, KEYS[1] + "0"]], type=pa.string())])
    assert set(found) == {KEYS[0]}
    assert "short" not in found
    assert KEYS[1] not in found


def test_a_folder_s_finished_episodes_are_its_rows(out: Path) -> None:
    assert len(FinishedKeys.read(out)) == 0
    InProcess(make_plan(sweep()), out).run()
    assert set(FinishedKeys.read(out)) == {row["episode"] for row in rows(out, "episodes")}
