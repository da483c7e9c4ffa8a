"""Members of tar files, read as a stream."""

from __future__ import annotations

import tarfile
import zlib
from collections.abc import Generator
from typing import IO

_CHUNK = 1 << 20


class ArchiveError(Exception):
    """An archive is damaged or lacks a member; the message continues a sentence that starts with its path."""


def copy_member(stream: IO[bytes], name: str) -> Generator[bytes, None, None]:
    """The bytes of the regular file ``name`` in a tar file, packed or not, in chunks. Nothing else is unpacked.

    Raises:
        ArchiveError: no such member, or the archive is damaged.
    """
    try:
        with tarfile.open(fileobj=stream, mode="r|*") as archive:
            for member in archive:
                content = archive.extractfile(member) if member.name.removeprefix("./") == name else None
                if content is not None:
                    while chunk := content.read(_CHUNK):
                        yield chunk
                    return
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise ArchiveError(f"is no sound archive ({error})") from error
    raise ArchiveError(f"holds no file {name}")
