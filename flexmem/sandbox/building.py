"""Building images."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from typing import TYPE_CHECKING

from flexmem.sandbox.daemon import Daemon
from flexmem.sandbox.errors import SandboxError

if TYPE_CHECKING:
    import docker

__all__ = ["build_image"]

_SHOWN_LINES = 25


async def build_image(
    tag: str,
    context: Mapping[str, bytes],
    *,
    arguments: Mapping[str, str],
    labels: Mapping[str, str],
    stages: Mapping[str, str],
    deadline_s: float,
) -> None:
    """Build an image, with this machine's network.

    Args:
        tag: its name.
        context: the files that the recipe may copy, ``Dockerfile`` among them, by path.
        arguments: build arguments; they are part of the image's history, so no secrets.
        labels: what the image is marked with.
        stages: labels of stages that are not kept, even as a cache: what was copied into them goes with them.
        deadline_s: the most seconds that it may take.

    Raises:
        SandboxError: no daemon, no base image, or a step failed; with the last lines that it printed.
    """
    what = f"building {tag} ({', '.join(f'{name}={value}' for name, value in arguments.items())})"
    daemon = Daemon(call_s=deadline_s)
    try:
        await daemon.call(
            what,
            lambda client: _build(client, what, tag, context, arguments=arguments, labels=labels, stages=stages),
        )
    finally:
        daemon.close()


def _build(
    client: docker.DockerClient,
    what: str,
    tag: str,
    context: Mapping[str, bytes],
    *,
    arguments: Mapping[str, str],
    labels: Mapping[str, str],
    stages: Mapping[str, str],
) -> None:
    from docker.errors import BuildError

    try:
        client.images.build(
            fileobj=_packed(context),
            custom_context=True,
            tag=tag,
            buildargs=dict(arguments),
            labels=dict(labels),
            network_mode="host",
            rm=True,
            forcerm=True,
        )
    except BuildError as error:
        lines = "".join(entry.get("stream", "") for entry in error.build_log).splitlines()[-_SHOWN_LINES:]
        raise SandboxError(f"{what}: {error.msg}. The last lines were:\n" + "\n".join(lines)) from error
    finally:
        marks = [f"{name}={value}" for name, value in stages.items()]
        client.images.prune(filters={"dangling": True, "label": marks})


def _packed(context: Mapping[str, bytes]) -> io.BytesIO:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, content in sorted(context.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(entry, io.BytesIO(content))
    packed.seek(0)
    return packed
