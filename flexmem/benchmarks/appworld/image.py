"""The image of AppWorld's environment server: built on this machine when it is missing or its recipe has changed."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Literal

from flexmem.benchmarks.appworld.server import SERVER
from flexmem.sandbox.building import build_image
from flexmem.sandbox.errors import ImageMissingError, SandboxError
from flexmem.sandbox.runtime import DockerRuntime

__all__ = ["DEFAULT_BASE", "ensure_image"]

Policy = Literal["build", "never"]

DEFAULT_BASE = "python:3.11-slim"
RECIPE = Path(__file__).parents[3] / "containers" / "appworld" / "Dockerfile"
REQUIREMENTS = SERVER.parent / "requirements.txt"

_LABEL = "flexmem.recipe"
_STAGE = {"flexmem.stage": "appworld-install"}  # as the recipe has it
_BUILD_S = 1_800.0
_PIP_S = 60.0
_CA_FILE = "/machine/ca.pem"
_PIP_KEYS = ("index-url", "extra-index-url", "trusted-host", "proxy", "timeout", "retries")
_CA_VARIABLES = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")


async def ensure_image(
    image: str, *, base: str = DEFAULT_BASE, policy: Policy = "build", runtime: DockerRuntime | None = None
) -> bool:
    """Make sure that the image is there and of this version's recipe; gives whether it was built now.

    Args:
        image: its name.
        base: an image with ``python3`` 3.11 and ``venv``; containers/base/bootstrap.sh makes one where none can be
            fetched.
        policy: ``never``: an image that is missing or of another recipe is an error.
        runtime: the daemon; None for this machine's.

    Raises:
        SandboxError: it can't be built, or may not.
    """
    runtime = runtime or DockerRuntime()
    recipe = await asyncio.to_thread(_recipe)
    digest = _digest(recipe, base)
    labels = await runtime.image_labels(image)
    if labels is not None and labels.get(_LABEL) == digest:
        return False
    if policy == "never":
        state = "is not on this machine" if labels is None else "was made by another recipe than this version's"
        raise ImageMissingError(f"image {image}: {state}. Let it be built (policy `build`).")
    await build_image(
        image,
        {**recipe, **await asyncio.to_thread(_machine)},
        arguments={"BASE": base},
        labels={_LABEL: digest},
        stages=_STAGE,
        deadline_s=_BUILD_S,
    )
    return True


def _recipe() -> dict[str, bytes]:
    files = {"Dockerfile": RECIPE, "requirements.txt": REQUIREMENTS, "server.py": SERVER}
    try:
        return {name: path.read_bytes() for name, path in files.items()}
    except OSError as error:
        raise SandboxError(
            f"{error.filename}: can't be read ({error.strerror}), which the image is built from. Build it from a "
            "checkout of flexmem; the package alone does not hold the recipe."
        ) from error


def _digest(recipe: dict[str, bytes], base: str) -> str:
    parts = [base.encode(), *(name.encode() + b"\0" + content for name, content in sorted(recipe.items()))]
    return hashlib.sha256(b"\0\0".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()[:32]


def _machine() -> dict[str, bytes]:
    """How this machine reaches a package index: pip's settings, and the certificates that it trusts. Both are copied
    into a stage that is not kept.
    """
    lines = ["[global]", *(f"{key} = {value}" for key, value in _pip_settings() if key in _PIP_KEYS)]
    files = {}
    for variable in _CA_VARIABLES:
        path = Path(os.environ.get(variable, ""))
        if path.is_file():
            files["machine/ca.pem"] = path.read_bytes()
            lines.append(f"cert = {_CA_FILE}")
            break
    return {**files, "machine/pip.conf": "\n".join([*lines, ""]).encode()}


def _pip_settings() -> list[tuple[str, str]]:
    """What pip is told by its files and by variables, such as ``global.index-url='…'``; later ones win."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    try:
        told = subprocess.run(command, check=True, capture_output=True, text=True, timeout=_PIP_S).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise SandboxError(f"{' '.join(command)}: failed ({error}); the image's build needs pip's settings.") from error
    found: dict[str, str] = {}
    for line in told.splitlines():
        name, _, value = line.partition("=")
        kept = [word for word in value.strip("'\"").replace("\\n", " ").split() if not word.startswith("file:")]
        if kept:
            found[name.rpartition(".")[2]] = "\n    ".join(kept)
    return list(found.items())
