"""Starting containers, and finding those that were left."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flexmem.sandbox.container import Container, remove_container
from flexmem.sandbox.daemon import Daemon
from flexmem.sandbox.errors import ImageMissingError, SandboxError
from flexmem.sandbox.labels import OWNER, Mark
from flexmem.sandbox.spec import ContainerSpec, create_options

if TYPE_CHECKING:
    import docker

__all__ = ["DockerRuntime", "Labelled"]


@dataclass(frozen=True, slots=True)
class Labelled:
    """A container that carries our labels, running or not."""

    identity: str
    name: str
    labels: Mapping[str, str]


class DockerRuntime:
    """Containers of one daemon. Can be pickled."""

    def __init__(self, daemon: Daemon | None = None) -> None:
        self.daemon = daemon or Daemon()

    async def check(self) -> str:
        """The daemon's version.

        Raises:
            DockerUnavailableError: none answers.
        """
        return str((await self.daemon.call("Docker", lambda client: client.version()))["Version"])

    async def start(self, spec: ContainerSpec, *, run: str, episode: str = "") -> Container:
        """Start a container. A caller that is cancelled meanwhile leaves none.

        Args:
            spec: what it is to be.
            run: whose it is (`flexmem.sandbox.labels.run_name`).
            episode: what it serves, if it is one episode.

        Raises:
            SandboxError: no daemon, no image, no room, or the daemon refused.
        """
        starting = asyncio.create_task(self._start(spec, run, episode))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            # The daemon starts it all the same; whoever would have removed it is gone.
            (outcome,) = await asyncio.gather(starting, return_exceptions=True)
            if isinstance(outcome, Container):
                await outcome.kill()
            raise

    async def labelled(self) -> list[Labelled]:
        """All containers with our labels, whoever owns them."""
        return await self.daemon.call("listing containers", _labelled)

    async def remove(self, identity: str, name: str) -> None:
        """Kill and remove a container; one that is gone is fine."""
        await remove_container(self.daemon, identity, name)

    async def image_labels(self, image: str) -> Mapping[str, str] | None:
        """The labels of an image, None if this machine lacks it."""
        try:
            return await self.daemon.call(f"image {image}", lambda client: _image_labels(client, image))
        except ImageMissingError:
            return None

    async def _start(self, spec: ContainerSpec, run: str, episode: str) -> Container:
        created = time.time()
        mark = Mark.of_this_process(run, created + spec.lifetime_s, episode)
        name = f"flexmem-{uuid.uuid4().hex[:12]}"
        options = create_options(spec, name, mark.labels())
        try:
            identity, attached = await self.daemon.call(
                f"starting a container of {spec.image}", lambda client: _create(client, options)
            )
        except BaseException:
            with suppress(SandboxError):  # it carries its mark, so a sweep finds what is left
                await remove_container(self.daemon, name, name)
            raise
        container = Container(self.daemon, name, identity, created=created, expires=mark.deadline)
        container.follow(attached)
        return container


def _create(client: docker.DockerClient, options: Mapping[str, object]) -> tuple[str, Any]:
    """Attached before it is started, so that not a line is missed: it may be gone before one could ask."""
    container = client.containers.create(**options)
    attached = container.attach_socket(params={"stdout": 1, "stderr": 1, "stream": 1})
    container.start()
    return container.id, attached


def _labelled(client: docker.DockerClient) -> list[Labelled]:
    rows = client.api.containers(all=True, filters={"label": [OWNER]})
    return [Labelled(row["Id"], row["Names"][0].lstrip("/"), row["Labels"]) for row in rows]


def _image_labels(client: docker.DockerClient, image: str) -> Mapping[str, str]:
    return dict(client.images.get(image).labels)
