"""Stratified draws and shorter histories."""

from __future__ import annotations

import pytest

from flexmem.benchmarks.shortening import newest, session_tokens
from flexmem.benchmarks.stratified import draw
from flexmem.history import Session, Turn

STRATA = {"few": [f"f{n}" for n in range(3)], "many": [f"m{n}" for n in range(21)], "some": [f"s{n}" for n in range(6)]}


def shares(drawn: frozenset[str]) -> dict[str, int]:
    return {name: sum(key in drawn for key in ids) for name, ids in STRATA.items()}


def test_each_stratum_gets_its_share_by_largest_remainders() -> None:
    assert shares(draw(STRATA, 10, 0)) == {"few": 1, "many": 7, "some": 2}
    # 0.7, 4.9 and 1.4 of 7: the remainders .9 and .7 get the two that are left.
    assert shares(draw(STRATA, 7, 0)) == {"few": 1, "many": 5, "some": 1}
    # 0.5, 3.5 and 1 of 5: of the equal remainders the earlier name's goes first.
    assert shares(draw(STRATA, 5, 0)) == {"few": 1, "many": 3, "some": 1}
    # 0.4, 2.8 and 0.8 of 4: the larger remainders are the later names'.
    assert shares(draw(STRATA, 4, 0)) == {"few": 0, "many": 3, "some": 1}
    assert draw(STRATA, 30, 0) == {key for ids in STRATA.values() for key in ids}


def test_the_seed_decides_and_the_order_of_ids_does_not() -> None:
    assert draw(STRATA, 10, 1) == draw({name: ids[::-1] for name, ids in STRATA.items()}, 10, 1)
    assert len({draw(STRATA, 10, seed) for seed in range(5)}) > 1
    # sha256sum of "0/f0", "0/f1" and "0/f2" begins with 8258, 9647 and 2078.
    assert draw({"few": ["f0", "f1", "f2"]}, 1, 0) == {"f2"}


def test_more_than_there_is_is_refused() -> None:
    with pytest.raises(ValueError, match="31 can't be drawn from 30"):
        draw(STRATA, 31, 0)


# ---------------------------------------------------------------- shorter histories


def history(*words: int) -> list[Session]:
    """Sessions of one turn of ``words`` words: as many tokens and 3 more ("user", ":" and the line's end)."""
    return [Session(str(n), (Turn(f"{n}", "user", " ".join(["oak"] * count)),)) for n, count in enumerate(words)]


def test_sessions_are_counted_as_histories_show_them() -> None:
    assert [session_tokens(session) for session in history(1, 5)] == [4, 8]
    assert session_tokens(Session("1", (Turn("1", "user", "oak", speaker="Ann"),))) == 4


def test_the_newest_sessions_that_fit_stay() -> None:
    sessions = history(5, 5, 5, 5)  # 8 tokens each
    assert newest(sessions, None) == [0, 1, 2, 3]
    assert newest(sessions, 32) == [0, 1, 2, 3]
    assert newest(sessions, 31) == [1, 2, 3]
    assert newest(sessions, 16) == [2, 3]
    assert newest(sessions, 1) == [3]


def test_nothing_older_is_let_in_for_being_short() -> None:
    assert newest(history(1, 5, 1), 9) == [2]


def test_what_must_stay_stays_and_the_newest_get_the_room_that_is_left() -> None:
    sessions = history(5, 5, 5, 5)
    assert newest(sessions, 16, kept=[0]) == [0, 3]
    assert newest(sessions, 8, kept=[0]) == [0]
    assert newest(sessions, 1, kept=[0, 2]) == [0, 2]
    assert newest(sessions, 24, kept=[3]) == [1, 2, 3]
