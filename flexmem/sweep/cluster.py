"""Joining a Ray cluster, or starting one on this machine."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flexmem.errors import FlexmemError
from flexmem.sweep.config import ConfigError, EngineEntry


class RayMissingError(ConfigError):
    """Ray is not installed."""


class ClusterError(FlexmemError):
    """Ray can't be started or joined."""


def import_ray() -> Any:
    """Ray, with its environment set before the first import.

    Raises:
        RayMissingError: it is not installed.
    """
    # A token file that lies around makes clients fail unless the mode is said; deployments say ``token``.
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError as error:
        raise RayMissingError("a sweep runs on Ray: pip install 'flexmem[sweep]'") from error
    return ray


@contextmanager
def ray_cluster(engine: EngineEntry) -> Iterator[Any]:
    """Ray, connected: to the address in the configuration or RAY_ADDRESS, else to one of our own that ends with the
    block.

    Raises:
        ClusterError: it does not start in time, or there is no cluster at the address.
    """
    ray = import_ray()
    address = engine.address or os.environ.get("RAY_ADDRESS")
    if ray.is_initialized():  # the caller's own; it stays
        yield ray
        return
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if not address:
        memory = engine.object_store_mb * 2**20
        options |= {"include_dashboard": False, "object_store_memory": memory}
    try:
        ray.init(address=address or "local", **options)
    except Exception as error:  # Ray's own here are bare exceptions
        said = " ".join(str(error).split())
        if address:
            raise ClusterError(
                f"there is no Ray cluster at {address} that can be joined; see engine.address or RAY_ADDRESS ({said})"
            ) from error
        raise ClusterError(
            "Ray did not start on this machine; it has little time to, so give the command again when the machine has "
            f"less to do. Its logs lie in RAY_TMPDIR, else in /tmp/ray ({said})"
        ) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def episode_slots(ray: Any, engine: EngineEntry) -> int:
    """How many workers to start: as configured, else one a CPU."""
    if engine.workers is not None:
        return engine.workers
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def machines(ray: Any) -> int:
    """How many machines of the cluster can run workers."""
    return sum(1 for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU"))
