"""Starting a service's class as a Ray actor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ray

# Restarted whenever it dies, its pending calls sent again: a service keeps nothing that is not on disk or rebuilt.
SERVICE: dict[str, Any] = {"num_cpus": 0, "max_restarts": -1, "max_task_retries": -1, "max_concurrency": 1_000}


def start_actor(
    service: type, *arguments: object, concurrency_groups: Mapping[str, int] | None = None, **options: Any
) -> Any:
    """A handle on a new actor of that class, with Ray's actor options. Methods of a concurrency group have a thread and
    an event loop of their own; the number says how many calls of it may run at a time.
    """
    make: Any = ray.remote
    # Ray takes this one option in no other way, and not without a value.
    remote = make(concurrency_groups=dict(concurrency_groups))(service) if concurrency_groups else make(service)
    return remote.options(**options).remote(*arguments)
