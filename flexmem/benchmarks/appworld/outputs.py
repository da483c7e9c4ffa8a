"""Unpacking what a sandbox hands over: a tar that an agent's code may have shaped."""

from __future__ import annotations

import io
import shutil
import tarfile
import uuid
import zlib
from pathlib import Path, PurePosixPath

from flexmem.sandbox.errors import SandboxBrokenError, SandboxError

__all__ = ["unpack"]

_FILES = 2_000


def unpack(packed: bytes, target: Path, most: int) -> None:
    """Put the files of a gzipped tar into ``target``, in place of what lies there. Only files and folders below it are
    taken, 2,000 of them at most, with ``most`` bytes in all.

    Raises:
        SandboxBrokenError: it is no such tar. SandboxError: ``target`` can't be written.
    """
    part = target.with_name(f".{target.name}.{uuid.uuid4().hex}.part")
    try:
        part.mkdir(parents=True)
        _extract(packed, part, most)
        shutil.rmtree(target, ignore_errors=True)
        part.replace(target)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise SandboxBrokenError(
            f"{target.name}: the sandbox handed over outputs that are no sound archive ({error})."
        ) from error
    except OSError as error:
        raise SandboxError(
            f"{target}: can't be written ({error.strerror or error}). Make room or rights there."
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _extract(packed: bytes, folder: Path, most: int) -> None:
    left = most
    with tarfile.open(fileobj=io.BytesIO(packed), mode="r|gz") as tar:
        for number, member in enumerate(tar):
            path = PurePosixPath(member.name)
            left -= member.size
            if path.is_absolute() or ".." in path.parts or number >= _FILES or left < 0:
                raise tarfile.TarError(f"{member.name!r} is outside, or one too many")
            if member.isdir():
                (folder / path).mkdir(parents=True, exist_ok=True)
            elif member.isreg():
                content = tar.extractfile(member)
                assert content is not None
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                with (folder / path).open("xb") as out:
                    shutil.copyfileobj(content, out)
            else:
                raise tarfile.TarError(f"{member.name!r} is neither a file nor a folder")
