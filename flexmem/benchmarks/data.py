"""Public benchmark files, pinned by the SHA-256 of their raw bytes: found, fetched, verified.

A file is looked for, in this order, in ``$FLEXMEM_DATA`` (a folder of yours, never written to), in the cache folder
(``$FLEXMEM_CACHE/data``, else the user's cache), then at its public addresses. In a folder it may lie plain or
xz-compressed (``name.xz``); the digest is of the raw bytes either way. Whatever is wrong is a `DataError` that names
the file, what happened and what to do.

Of a few files nobody has told the digest. Such a file is *unpinned*: the digest of what was fetched is kept beside it
(``name.sha256``) and holds from then on, and whoever reads the file gets the digest of what was read, to be recorded.
"""

from __future__ import annotations

import hashlib
import lzma
import os
import uuid
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path, PurePosixPath
from typing import IO, Literal, NamedTuple
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import platformdirs

from flexmem.benchmarks.archives import ArchiveError, copy_member
from flexmem.benchmarks.protocol import DataError, DataMissingError

DATA_VARIABLE = "FLEXMEM_DATA"
CACHE_VARIABLE = "FLEXMEM_CACHE"
TIMEOUT_S = 60.0  # of each network operation, not of the whole transfer

_CHUNK = 1 << 20
_LOOPBACK = ("127.0.0.1", "::1", "localhost")

Source = Literal["FLEXMEM_DATA", "cache"]


@dataclass(frozen=True, slots=True)
class DataFile:
    """A public file. ``name`` is its path below a data folder (``locomo/locomo10.json``), ``size`` its raw bytes.

    ``addresses`` are tried in order; they are https (plain http is for a mirror on this machine). ``sha256`` and
    ``size`` are None where they are not known. ``archive`` is a tar file that holds this file under the same name; it
    is fetched in its place.
    """

    name: str
    addresses: tuple[str, ...]
    sha256: str | None
    size: int | None
    licence: str
    archive: DataFile | None = None

    def __post_init__(self) -> None:
        """Refuse what could leave the data folder or be altered on the way."""
        path = PurePosixPath(self.name)
        if path.is_absolute() or ".." in path.parts:
            raise ValueError(f"{self.name!r} is not a path below a data folder")
        for address in self.addresses:
            parts = urlsplit(address)
            if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
                raise ValueError(f"{address!r} is not an https address")

    @property
    def sources(self) -> tuple[str, ...]:
        """Where it can be fetched from; empty for a file that has no public address."""
        return self.archive.addresses if self.archive else self.addresses


@dataclass(frozen=True, slots=True)
class Found:
    """Where a file lies, plain or ``.xz``."""

    path: Path
    source: Source


class Checked(NamedTuple):
    """A file that was checked: where it lies, and the SHA-256 of its raw bytes."""

    path: Path
    sha256: str


@dataclass(frozen=True, slots=True)
class FileState:
    """One line of ``flexmem data list``. ``problem`` says what is wrong with a bad file and what to do, and of an
    unpinned one what was read.
    """

    file: DataFile
    state: Literal["good", "unpinned", "bad", "missing"]
    found: Found | None = None
    problem: str | None = None


def locate(file: DataFile) -> Found | None:
    """Where the file lies on this machine; its content isn't looked at.

    Raises:
        DataError: ``$FLEXMEM_DATA`` is set but is no folder.
    """
    for folder, source in _folders():
        plain = folder / file.name
        for path in (plain, plain.with_name(plain.name + ".xz")):
            if os.path.isfile(path):  # unlike Path.is_file, False where a folder may not be entered
                return Found(path, source)
    return None


def read(file: DataFile) -> bytes:
    """The file's raw bytes, verified; fetched first where it lies nowhere.

    Raises:
        DataError: missing and unreachable, another digest than the pinned one, truncated, unreadable.
    """
    found = locate(file)
    path = found.path if found else fetch(file)
    content = b"".join(raw_chunks(path, limit=file.size))
    _check(file, path, len(content), hashlib.sha256(content).hexdigest())
    return content


def checked(file: DataFile) -> Checked:
    """Where a sound copy of the file lies, fetched first where it lies nowhere; for files too large to hold.

    Raises:
        DataError: as `read`.
    """
    found = locate(file)
    path = found.path if found else fetch(file)
    return Checked(path, _digest(file, path))


def verify(file: DataFile) -> Found:
    """Check the file that lies on this machine against its pin, without holding it in memory.

    Raises:
        DataError: not on this machine, another digest than the pinned one, truncated, unreadable.
    """
    found = locate(file)
    if found is None:
        raise DataError(f"{file.name}: not on this machine (looked in {_places()}). {_remedy(file)}")
    _digest(file, found.path)
    return found


def fetch(file: DataFile, *, timeout_s: float = TIMEOUT_S) -> Path:
    """Make sure that a sound copy lies on this machine, and say where; a damaged copy in the cache is replaced.

    A download is written beside its target and renamed once its digest is right, so that processes may race and none
    sees a part of a file. A member of an archive is unpacked out of it.

    Raises:
        DataError: no address gave the pinned bytes, the cache can't be written, or the copy in ``$FLEXMEM_DATA`` is
            not the pinned file.
    """
    found = locate(file)
    if found is not None:
        try:
            return verify(file).path
        except DataError:
            if found.source == DATA_VARIABLE:  # the user's folder is not ours to mend
                raise
    target = cache_folder() / file.name
    if file.archive is not None:
        _unpack(file, fetch(file.archive, timeout_s=timeout_s), target)
        return target
    reasons = []
    for address in file.addresses:
        try:
            _download(address, file, target, timeout_s)
        except _Failed as failure:
            reasons.append(f"{address} {failure}")
            continue
        return target
    why = "; ".join(reasons) or "it has no public address"
    message = (
        f"{file.name}: not on this machine (looked in {_places()}), and could not be fetched: {why}. {_remedy(file)}"
    )
    raise DataMissingError(message, f"{file.name} is not on this machine, and {why}")


def state(file: DataFile) -> FileState:
    """What there is of the file on this machine; never fetches."""
    found = locate(file)
    if found is None:
        return FileState(file, "missing")
    try:
        digest = _digest(file, found.path)
    except DataError as error:
        return FileState(file, "bad", found, str(error))
    if file.sha256 is None:
        return FileState(file, "unpinned", found, f"no digest is pinned; what lies there has SHA-256 {digest}")
    return FileState(file, "good", found)


def states(files: Iterable[DataFile]) -> list[FileState]:
    """`state` of each file, in order."""
    return [state(file) for file in files]


def read_own(path: Path) -> tuple[bytes, str]:
    """Raw bytes and SHA-256 of a file of the user's own, plain or ``.xz``: nothing is pinned, the digest is recorded.

    Raises:
        DataMissingError: there is no such file. DataError: truncated, unreadable.
    """
    _refuse_missing(path)
    content = b"".join(raw_chunks(path))
    return content, hashlib.sha256(content).hexdigest()


def checked_own(path: Path) -> Checked:
    """As `read_own`, for a file too large to hold.

    Raises:
        DataMissingError: there is no such file. DataError: truncated, unreadable.
    """
    _refuse_missing(path)
    return Checked(path, _measure(raw_chunks(path))[1])


def cache_folder() -> Path:
    """Where fetched files are kept."""
    root = os.environ.get(CACHE_VARIABLE)
    return (Path(root) if root else Path(platformdirs.user_cache_dir("flexmem"))) / "data"


# ---------------------------------------------------------------- on this machine


def _folders() -> Iterator[tuple[Path, Source]]:
    own = os.environ.get(DATA_VARIABLE)
    if own:
        if not Path(own).is_dir():  # a misspelt folder must not turn into a silent download
            raise DataError(f"{DATA_VARIABLE} names {own}, which is not a folder. Correct it or unset it.")
        yield Path(own), "FLEXMEM_DATA"
    yield cache_folder(), "cache"


def _places() -> str:
    return " and ".join(str(folder) for folder, _ in _folders())


def _refuse_missing(path: Path) -> None:
    if not path.exists():
        message = f"{path}: can't be read (No such file or directory). Check that it exists and may be read."
        raise DataMissingError(message, f"{path} does not exist")


def _remedy(file: DataFile) -> str:
    put = f"put the file (plain or .xz) at {file.name} below the folder that {DATA_VARIABLE} names."
    if not file.sources:
        return put.capitalize()
    return f"Run `flexmem data fetch {file.name}` where the network reaches {', '.join(file.sources)}, or {put}"


def raw_chunks(path: Path, *, limit: int | None = None) -> Iterator[bytes]:
    """Raw bytes of a plain or xz file, ending soon after ``limit``: enough to tell that it is too long.

    Raises:
        DataError: truncated, unreadable.
    """
    seen = 0
    try:
        with _open(path) as stream:
            while (limit is None or seen <= limit) and (chunk := stream.read(_CHUNK)):
                seen += len(chunk)
                yield chunk
    except EOFError as error:
        raise DataError(f"{path}: the xz stream is cut short after {seen:,} raw bytes. Replace it.") from error
    except lzma.LZMAError as error:
        raise DataError(f"{path}: not a sound xz file ({error}). Replace it.") from error
    except OSError as error:
        reason = error.strerror or error
        raise DataError(f"{path}: can't be read ({reason}). Check that it exists and may be read.") from error


def _open(path: Path) -> IO[bytes]:
    return lzma.open(path) if path.suffix == ".xz" else path.open("rb")


def _measure(chunks: Iterable[bytes]) -> tuple[int, str]:
    size, digest = 0, hashlib.sha256()
    for chunk in chunks:
        size += len(chunk)
        digest.update(chunk)
    return size, digest.hexdigest()


def _digest(file: DataFile, path: Path) -> str:
    """SHA-256 of a copy of the file, which is the pinned one where there is one."""
    size, digest = _measure(raw_chunks(path, limit=file.size))
    _check(file, path, size, digest)
    return digest


def _check(file: DataFile, path: Path, size: int, digest: str) -> None:
    wanted = file.sha256 or _recorded(path)
    if file.size is not None and size > file.size:
        problem = f"more than the pinned {file.size:,} bytes"
    elif wanted is not None and digest != wanted:
        expected = wanted if file.size is None else f"{wanted} of {file.size:,}"
        problem = f"SHA-256 {digest} of {size:,} raw bytes, expected {expected}"
    else:
        return
    raise DataError(
        f"{path}: not the pinned {file.name}: {problem}. Delete or replace it, then run `flexmem data fetch "
        f"{file.name}`; a file of your own belongs in the benchmark's options."
    )


def _record(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")


def _recorded(path: Path) -> str | None:
    """The digest that was kept when an unpinned file was fetched."""
    try:
        return _record(path).read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None


# ---------------------------------------------------------------- over the network


class _Failed(Exception):
    """An address did not give the pinned bytes; the message continues a sentence that starts with the address."""


def _download(address: str, file: DataFile, target: Path, timeout_s: float) -> None:
    with closing(_sent(address, timeout_s)) as chunks:
        _save(chunks, file, target, "sent")


def _unpack(file: DataFile, archive: Path, target: Path) -> None:
    """Copy a member out of its archive, which has been checked.

    Raises:
        DataError: the archive can't be read, lacks the file, or holds another one than the pinned one.
    """
    try:
        with _open(archive) as stream, closing(copy_member(stream, file.name)) as chunks:
            _save(chunks, file, target, "holds")
    except ArchiveError as error:
        raise DataError(f"{archive}: {error}. Delete it and run `flexmem data fetch {file.name}` again.") from error
    except _Failed as failure:
        raise DataError(f"{archive}: {failure} as {file.name}") from failure


def _save(chunks: Iterable[bytes], file: DataFile, target: Path, verb: str) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{target.name}.{uuid.uuid4().hex}.part")
        try:
            digest = _write(chunks, file, part, verb)
            if file.sha256 is None:
                _record(target).write_text(digest + "\n", "ascii")
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise DataError(
            f"{file.name}: can't be written to {target} ({error.strerror or error}). Make room or rights there, or "
            f"name another folder in {CACHE_VARIABLE}."
        ) from error


def _write(chunks: Iterable[bytes], file: DataFile, part: Path, verb: str) -> str:
    """Write the file's bytes and give their SHA-256; ``verb`` says in failures what their source did."""
    size, digest = 0, hashlib.sha256()
    with part.open("xb") as out:
        for chunk in chunks:
            size += len(chunk)
            if file.size is not None and size > file.size:
                raise _Failed(f"{verb} more than the pinned {file.size:,} bytes")
            digest.update(chunk)
            out.write(chunk)
        out.flush()
        os.fsync(out.fileno())
    if file.size is not None and size < file.size:
        raise _Failed(f"{verb} {size:,} of {file.size:,} bytes")
    if file.sha256 is not None and digest.hexdigest() != file.sha256:
        raise _Failed(f"{verb} SHA-256 {digest.hexdigest()}, expected {file.sha256}")
    return digest.hexdigest()


def _sent(address: str, timeout_s: float) -> Generator[bytes, None, None]:
    """The body of a GET, in chunks. Network errors become `_Failed` here: an `OSError` outside is the disk's."""
    try:
        with urlopen(Request(address, headers={"User-Agent": "flexmem"}), timeout=timeout_s) as response:
            size, announced = 0, response.headers.get("Content-Length")
            while chunk := response.read(_CHUNK):
                size += len(chunk)
                yield chunk
            if announced is not None and size < int(announced):  # all that tells where no size is pinned
                raise _Failed(f"sent {size:,} of {int(announced):,} bytes")
    except HTTPError as error:
        error.close()
        raise _Failed(f"answered {error.code} {error.reason}") from error
    except (OSError, HTTPException) as error:
        raise _Failed(f"did not answer in full ({getattr(error, 'reason', None) or error!r})") from error
