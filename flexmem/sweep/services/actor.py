"""Starting a service's class as a Ray actor."""

from __future__ import annotations

from typing import Any

import ray

# Restarted whenever it dies, its pending calls sent again: a service keeps nothing that is not on disk or rebuilt.
SERVICE = {"num_cpus": 0, "max_restarts": -1, "max_task_retries": -1, "max_concurrency": 1_000}


def start_actor(service: type, *arguments: object, **options: Any) -> Any:
    """A handle on a new actor of that class, with Ray's actor options."""
    remote: Any = ray.remote(service)
    return remote.options(**options).remote(*arguments)
