"""Ray that does not come up is said in one message."""

from __future__ import annotations

from typing import Any

import pytest
import ray

from flexmem.sweep.cluster import ClusterError, ray_cluster
from flexmem.sweep.config import EngineEntry


@pytest.mark.parametrize(
    ("address", "said"),
    [
        (None, "give the command again when the machine has less to do. Its logs lie in RAY_TMPDIR, else in /tmp/ray"),
        ("ray-head:6379", "there is no Ray cluster at ray-head:6379 that can be joined; see engine.address or RAY_ADD"),
    ],
)
def test_a_ray_that_does_not_come_up(address: str | None, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    def timed_out(**options: Any) -> None:
        asked.append(options)
        raise Exception("The current node timed out\n  during startup.")  # as Ray does, not even an error of its own

    monkeypatch.setattr(ray, "init", timed_out)
    with pytest.raises(ClusterError) as raised, ray_cluster(EngineEntry(address=address)):
        pytest.fail("the block is not entered")
    assert said in str(raised.value)
    assert str(raised.value).endswith("(The current node timed out during startup.)")
    assert asked[0]["address"] == (address or "local")
    assert ("object_store_memory" in asked[0]) == (address is None)
