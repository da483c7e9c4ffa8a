"""What a container is to be: its image and command, what it sees, and how much it may take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Bind", "ContainerSpec", "Tmpfs", "create_options"]

_KILL_AFTER_S = 5  # between the request to end and the end, when a lifetime is over
_LOG_MB = 1  # of a container's output that the daemon keeps: code inside must not fill the daemon's disk with it
_OPEN_FILES = 4_096


@dataclass(frozen=True, slots=True)
class Bind:
    """A file or folder of this machine, seen inside at ``target``. What is writable can fill this machine's disk."""

    source: Path
    target: str
    writable: bool = False


@dataclass(frozen=True, slots=True)
class Tmpfs:
    """A folder in memory of at most ``size_mb`` MiB, which count as the container's memory. Where the image has that
    folder, its mode holds.
    """

    target: str
    size_mb: int
    executable: bool = False


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """A container without network, without capabilities, whose processes can't gain any.

    PID 1 ends by itself after ``lifetime_s`` seconds, whether or not the process that started it still lives, and the
    container is removed when it ends. The image needs ``timeout`` (coreutils or busybox).

    ``memory_mb`` and ``swap_mb`` are in MiB; ``cpus`` is a number of processors, None for all; ``user`` is a name or
    ``uid:gid``, None for the image's own; ``pids`` bounds processes and threads together.
    """

    image: str
    command: tuple[str, ...]
    lifetime_s: float
    environment: Mapping[str, str] = field(default_factory=dict)
    binds: tuple[Bind, ...] = ()
    tmpfs: tuple[Tmpfs, ...] = ()
    memory_mb: int = 1_024
    swap_mb: int = 0
    pids: int = 128
    cpus: float | None = None
    user: str | None = None
    working_dir: str | None = None
    read_only_root: bool = True
    labels: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what Docker would take to mean "no limit"."""
        for name in ("lifetime_s", "memory_mb", "pids"):
            if getattr(self, name) <= 0:
                raise ValueError(f"a container's {name} must be above 0, not {getattr(self, name)}")
        if self.swap_mb < 0 or (self.cpus is not None and self.cpus <= 0):
            raise ValueError(f"swap_mb {self.swap_mb} or cpus {self.cpus} of a container is no amount")


def create_options(spec: ContainerSpec, name: str, labels: Mapping[str, str]) -> dict[str, Any]:
    """The arguments of the Docker SDK's ``containers.create``."""
    return {
        "image": spec.image,
        # An image's own entry point would stand before the lifetime's guard.
        "entrypoint": ["timeout", "-k", str(_KILL_AFTER_S), str(max(1, round(spec.lifetime_s)))],
        "command": list(spec.command),
        "name": name,
        "labels": {**spec.labels, **labels},
        "environment": dict(spec.environment),
        "volumes": {
            str(bind.source): {"bind": bind.target, "mode": "rw" if bind.writable else "ro"} for bind in spec.binds
        },
        "tmpfs": {entry.target: _tmpfs_options(entry) for entry in spec.tmpfs},
        "mem_limit": f"{spec.memory_mb}m",
        "memswap_limit": f"{spec.memory_mb + spec.swap_mb}m",
        "pids_limit": spec.pids,
        "nano_cpus": None if spec.cpus is None else round(spec.cpus * 1e9),
        "user": spec.user,
        "working_dir": spec.working_dir,
        "read_only": spec.read_only_root,
        "network_mode": "none",
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "ulimits": [
            {"Name": "nofile", "Soft": _OPEN_FILES, "Hard": _OPEN_FILES},
            {"Name": "core", "Soft": 0, "Hard": 0},
        ],
        "log_config": {"Type": "json-file", "Config": {"max-size": f"{_LOG_MB}m", "max-file": "1"}},
        "init": True,
        "auto_remove": True,
    }


def _tmpfs_options(entry: Tmpfs) -> str:
    return f"size={entry.size_mb}m,mode=1777,nosuid,nodev,{'exec' if entry.executable else 'noexec'}"
