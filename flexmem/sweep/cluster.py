"""Joining a Ray cluster, or starting one on this machine."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flexmem.sweep.config import ConfigError, EngineEntry


class RayMissingError(ConfigError):
    """Ray is not installed."""


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
    """
    ray = import_ray()
    address = engine.address or os.environ.get("RAY_ADDRESS")
    if ray.is_initialized():  # the caller's own; it stays
        yield ray
        return
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address:
        ray.init(address=address, **options)
    else:
        ray.init(
            address="local",
            include_dashboard=False,
            object_store_memory=engine.object_store_mb * 2**20,
            **options,
        )
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
