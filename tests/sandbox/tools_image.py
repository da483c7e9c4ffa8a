"""A tiny image made of this machine's own binaries: nothing has to be fetched to try containers."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

TOOLS = ("sh", "timeout", "sleep", "cat", "head", "tail", "dd", "id", "touch", "yes", "ls", "kill", "mkdir")
TAG = "flexmem/test-tools"


def make(client: Any, tag: str = TAG) -> str:
    """Import it into the daemon of a Docker SDK client."""
    files: dict[str, Path] = {}
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found is not None, f"{tool} is not on this machine"
        path = Path(found).resolve()
        files[f"bin/{tool}"] = path
        files |= {library.lstrip("/"): Path(library).resolve() for library in libraries(path)}
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, path in sorted(files.items()):
            tar.add(path, arcname=name)
        folder = tarfile.TarInfo("tmp")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o1777
        tar.addfile(folder)
    client.api.import_image_from_data(archive.getvalue(), repository=tag, changes=["ENV PATH=/bin"])
    return tag


def libraries(path: Path) -> list[str]:
    told = subprocess.run(["ldd", str(path)], check=True, capture_output=True, text=True).stdout
    return re.findall(r"(/\S+) \(0x", told)
