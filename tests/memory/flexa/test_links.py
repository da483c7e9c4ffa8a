"""Links between records: by cosine and by shared rare entities, to earlier units, counted both ways (docs/methods.md
A.2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexmem.memory.flexa.config import FlexaConfig
from flexmem.memory.flexa.links import Links
from flexmem.memory.flexa.records import Record
from flexmem.ports import VectorArray


def at(degrees: float) -> VectorArray:
    """The unit vector at an angle."""
    return np.array([math.cos(math.radians(degrees)), math.sin(math.radians(degrees))], dtype=np.float32)


def linked(
    angles: Sequence[float], entities: Sequence[Sequence[str]] | None = None, config: FlexaConfig | None = None
) -> list[set[int]]:
    """Each unit's links after all records."""
    links = Links(config or FlexaConfig())
    vectors = [at(angle) for angle in angles]
    for uid, vector in enumerate(vectors):
        earlier = np.array(vectors[:uid], dtype=np.float32).reshape(uid, 2)
        own = tuple(entities[uid]) if entities else ()
        links.add(Record(uid, f"record {uid}", entities=own), vector, earlier)
    return [set(links.of(uid)) for uid in range(len(vectors))]


def test_links_go_to_the_three_nearest_earlier_records_from_cosine_045_on_and_count_both_ways() -> None:
    """The last record stands at 0 degrees; the cosines of those before it: 10: 0.98, 20: 0.94, 30: 0.87, 50: 0.64 - the
    fourth - and 70: 0.34, too far even if it were alone.
    """
    links = linked([50, 30, 10, 20, 70, 0])
    assert links[5] == {1, 2, 3}
    assert all(5 in links[uid] for uid in (1, 2, 3))
    assert 5 not in links[0] | links[4]


@pytest.mark.parametrize(("degrees", "there"), [(63.2, True), (63.3, False)])  # cos 63.256 degrees is 0.45
def test_the_least_cosine_is_045(degrees: float, there: bool) -> None:
    assert linked([0, degrees]) == ([{1}, {0}] if there else [set(), set()])


def test_equal_cosines_go_to_the_older_record() -> None:
    assert linked([0, 0, 0, 0, 0])[4] == {0, 1, 2}


def test_links_take_two_shared_rare_entities() -> None:
    far = [0, 90, 180, 270]
    entities = [["Ann", "/tmp/a"], ["ann", "/TMP/A", "Bo"], ["Ann", "Bo"], ["Ann"]]
    links = linked(far, entities)
    assert links[1] == {0, 2}  # 0: Ann and /tmp/a, upper and lower case alike; 2: Ann and Bo
    assert links[3] == set()  # one shared entity is too few


def test_an_entity_repeated_in_a_record_counts_once() -> None:
    assert linked([0, 90], [["Ann", "Bo"], ["Ann", "ANN", "ann"]]) == [set(), set()]


def test_an_entity_of_more_than_five_records_is_not_rare() -> None:
    """Records at right angles in turn, all with Ann and Bo: the fifth is still among five, the sixth is not."""
    config = FlexaConfig(links_per_unit=9, link_cosine=1.1)
    links = linked([0, 90, 180, 270, 0, 90, 180], [["Ann", "Bo"]] * 7, config)
    assert links[4] == {0, 1, 2, 3}
    assert links[5] == links[6] == set()


def test_by_entities_the_record_that_shares_most_comes_first_then_the_newer() -> None:
    config = FlexaConfig(links_per_unit=2, link_cosine=1.1)
    entities = [["a1", "b2", "c3"], ["a1", "b2"], ["b2", "c3"], ["a1", "b2", "c3"]]
    assert linked([0, 90, 180, 270], entities, config)[3] == {0, 2}


def test_both_kinds_of_links_are_made() -> None:
    config = FlexaConfig(links_per_unit=1)
    assert linked([0, 180, 1], [["x1", "y1"], ["a1", "b2"], ["a1", "b2"]], config)[2] == {0, 1}


def test_without_links_there_are_none() -> None:
    assert linked([0, 0, 0], [["a1", "b2"]] * 3, FlexaConfig(links_per_unit=0)) == [set(), set(), set()]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 360), st.sets(st.sampled_from("abcdef"), max_size=4)), max_size=12),
    st.integers(0, 4),
)
def test_links_are_mutual_few_and_never_to_oneself(drawn: list[tuple[int, set[str]]], number: int) -> None:
    config = FlexaConfig(links_per_unit=number)
    links = linked([angle for angle, _ in drawn], [sorted(names) for _, names in drawn], config)
    for uid, others in enumerate(links):
        assert uid not in others
        assert all(uid in links[other] for other in others)
        assert sum(other < uid for other in others) <= 2 * number
