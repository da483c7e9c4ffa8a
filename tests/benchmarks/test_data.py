"""Finding, fetching and verifying pinned files; fetches go to a real HTTP server on this machine."""

from __future__ import annotations

import hashlib
import io
import lzma
import os
import socket
import tarfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from flexmem.benchmarks import data
from flexmem.benchmarks.data import DataFile, Found
from flexmem.benchmarks.protocol import DataError

CONTENT = b"ten pinned lines\n" * 10
NAME = "toys/lines.txt"


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/absent":
            self.send_error(404)
            return
        if self.path == "/stalled":
            time.sleep(1.0)
            return
        body = {"/wrong": CONTENT[::-1], "/big": CONTENT * 1000}.get(self.path, CONTENT)
        sent = body[:50] if self.path.startswith("/short") else body
        self.send_response(200)
        if self.path != "/short-unannounced":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *args: object) -> None:
        """Quiet."""


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up early, as it should on an oversized file, is no news."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with _Server(("127.0.0.1", 0), _Handler) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, no data folder, and no proxy between us and the server."""
    monkeypatch.delenv("FLEXMEM_DATA", raising=False)
    monkeypatch.setenv("FLEXMEM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return tmp_path / "cache" / "data"


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder of the user's, named in FLEXMEM_DATA."""
    folder = tmp_path / "own"
    (folder / "toys").mkdir(parents=True)
    monkeypatch.setenv("FLEXMEM_DATA", str(folder))
    return folder


def pinned(*addresses: str) -> DataFile:
    return DataFile(NAME, addresses, hashlib.sha256(CONTENT).hexdigest(), len(CONTENT), "CC0")


def put(folder: Path, content: bytes, suffix: str = "") -> Path:
    path = folder / (NAME + suffix)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def leftovers(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


# ---------------------------------------------------------------- finding


@pytest.mark.parametrize("suffix", ["", ".xz"])
def test_a_file_in_the_users_folder_is_read_plain_or_xz(own: Path, suffix: str) -> None:
    path = put(own, lzma.compress(CONTENT) if suffix else CONTENT, suffix)
    assert data.locate(pinned()) == Found(path, "FLEXMEM_DATA")
    assert data.read(pinned()) == CONTENT
    assert data.verify(pinned()).path == data.fetch(pinned()) == path


def test_the_users_folder_comes_before_the_cache(own: Path, cache: Path) -> None:
    put(cache, CONTENT)
    assert data.locate(pinned()) == Found(cache / NAME, "cache")
    mine = put(own, lzma.compress(CONTENT), ".xz")
    assert data.locate(pinned()) == Found(mine, "FLEXMEM_DATA")


def test_the_cache_is_the_users_without_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FLEXMEM_CACHE")
    assert data.cache_folder().name == "data"
    assert "flexmem" in data.cache_folder().parts


def test_a_misspelt_folder_is_told_and_not_replaced_by_a_download(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLEXMEM_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match=r"nowhere, which is not a folder"):
        data.read(pinned(f"{server}/good"))


@pytest.mark.parametrize("name", ["/etc/passwd", "../lines.txt"])
def test_a_name_stays_below_the_folder(name: str) -> None:
    with pytest.raises(ValueError, match="not a path below"):
        DataFile(name, (), "0" * 64, 1, "CC0")


@pytest.mark.parametrize("address", ["http://example.org/x", "ftp://example.org/x", "file:///etc/passwd"])
def test_only_https_leaves_this_machine(address: str) -> None:
    with pytest.raises(ValueError, match="not an https address"):
        DataFile(NAME, (address,), "0" * 64, 1, "CC0")


# ---------------------------------------------------------------- verifying


def test_another_digest_is_named_with_path_expected_and_actual(own: Path) -> None:
    path = put(own, CONTENT[::-1])
    with pytest.raises(DataError) as caught:
        data.read(pinned())
    message = str(caught.value)
    for part in (str(path), pinned().sha256, hashlib.sha256(CONTENT[::-1]).hexdigest(), "replace it"):
        assert part in message


def test_an_xz_file_that_unpacks_to_too_much_is_not_unpacked_whole(own: Path) -> None:
    put(own, lzma.compress(bytes(64 << 20)), ".xz")
    with pytest.raises(DataError, match="more than the pinned 170 bytes"):
        data.verify(pinned())


def test_a_truncated_xz_file_is_called_that(own: Path) -> None:
    path = put(own, lzma.compress(os.urandom(5000))[:-40], ".xz")
    with pytest.raises(DataError, match="cut short") as caught:
        data.read(pinned())
    assert str(path) in str(caught.value)


def test_a_file_that_only_claims_to_be_xz_is_called_that(own: Path) -> None:
    put(own, CONTENT, ".xz")
    with pytest.raises(DataError, match="not a sound xz file"):
        data.read(pinned())


def test_an_unreadable_file_is_called_that(own: Path) -> None:
    (own / NAME).symlink_to("/proc/self/mem")  # exists, opens, and can't be read even by root
    with pytest.raises(DataError, match=r"can't be read \(Input/output error\)"):
        data.read(pinned())


def test_a_file_of_the_users_own_is_digested_and_not_pinned(tmp_path: Path) -> None:
    path = put(tmp_path, lzma.compress(CONTENT), ".xz")
    assert data.read_own(path) == (CONTENT, hashlib.sha256(CONTENT).hexdigest())
    with pytest.raises(DataError, match=r"absent\.json: can't be read \(No such file"):
        data.read_own(tmp_path / "absent.json")


def test_states_tell_good_bad_and_missing(own: Path, cache: Path) -> None:
    other = DataFile("toys/other.txt", (), "0" * 64, 5, "CC0")
    third = DataFile("toys/third.txt", (), "0" * 64, 5, "CC0")
    put(own, CONTENT)
    (own / other.name).write_bytes(b"12345")
    good, bad, missing = data.states([pinned(), other, third])
    assert (good.state, good.problem) == ("good", None)
    assert bad.state == "bad"
    assert "not the pinned toys/other.txt" in (bad.problem or "")
    assert (missing.state, missing.found) == ("missing", None)
    assert not cache.exists()


def test_verify_never_fetches(server: str, cache: Path) -> None:
    with pytest.raises(DataError, match="not on this machine"):
        data.verify(pinned(f"{server}/good"))
    assert not cache.exists()


# ---------------------------------------------------------------- fetching


def test_a_missing_file_is_fetched_into_the_cache_once(server: str, cache: Path) -> None:
    assert data.read(pinned(f"{server}/good")) == CONTENT
    assert leftovers(cache) == [cache / NAME]
    assert data.read(pinned(f"{server}/absent")) == CONTENT


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/wrong", "sent SHA-256 " + hashlib.sha256(CONTENT[::-1]).hexdigest()),
        ("/short-unannounced", "sent 50 of 170 bytes"),
        ("/short", r"sent 50 of 170 bytes|IncompleteRead"),
        ("/absent", "answered 404 Not Found"),
        ("/big", "sent more than the pinned 170 bytes"),
    ],
)
def test_a_fetch_that_fails_leaves_nothing_and_says_why(server: str, cache: Path, path: str, reason: str) -> None:
    with pytest.raises(DataError, match=reason) as caught:
        data.fetch(pinned(server + path))
    assert leftovers(cache) == []
    for part in (NAME, server + path, str(cache), "flexmem data fetch", "FLEXMEM_DATA"):
        assert part in str(caught.value)


def test_an_unreachable_address_is_called_that() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/good"
        with pytest.raises(DataError, match=r"could not be fetched: .* did not answer in full .*[Rr]efused"):
            data.fetch(pinned(address))


def test_a_stalled_address_times_out(server: str) -> None:
    with pytest.raises(DataError, match="timed out"):
        data.fetch(pinned(f"{server}/stalled"), timeout_s=0.2)


def test_the_next_address_is_tried(server: str) -> None:
    assert data.read(pinned(f"{server}/wrong", f"{server}/absent", f"{server}/good")) == CONTENT


def test_all_failed_addresses_are_named(server: str) -> None:
    with pytest.raises(DataError, match=r"/wrong sent SHA-256 .*; .*/absent answered 404"):
        data.fetch(pinned(f"{server}/wrong", f"{server}/absent"))


def test_a_damaged_copy_in_the_cache_is_refused_by_read_and_replaced_by_fetch(server: str, cache: Path) -> None:
    put(cache, CONTENT[:-1])
    with pytest.raises(DataError, match="not the pinned"):
        data.read(pinned(f"{server}/good"))
    data.fetch(pinned(f"{server}/good"))
    assert data.read(pinned()) == CONTENT


def test_a_damaged_copy_of_the_users_is_never_written_over(server: str, own: Path) -> None:
    path = put(own, b"mine")
    with pytest.raises(DataError, match="not the pinned"):
        data.fetch(pinned(f"{server}/good"))
    assert path.read_bytes() == b"mine"


def test_a_cache_that_cannot_be_written_is_named(server: str, cache: Path) -> None:
    cache.parent.mkdir(parents=True)
    cache.write_text("a file where the folder should be")
    with pytest.raises(DataError, match=r"can't be written to .*FLEXMEM_CACHE"):
        data.fetch(pinned(f"{server}/good"))


def test_processes_may_race(server: str, cache: Path) -> None:
    results: list[bytes] = []
    threads = [threading.Thread(target=lambda: results.append(data.read(pinned(f"{server}/good")))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [CONTENT] * 8
    assert leftovers(cache) == [cache / NAME]


# ---------------------------------------------------------------- files that nobody has pinned


def unpinned(*addresses: str) -> DataFile:
    return DataFile(NAME, addresses, None, None, "CC0")


def test_an_unpinned_file_is_told_as_such_with_its_digest(own: Path) -> None:
    path = put(own, CONTENT)
    digest = hashlib.sha256(CONTENT).hexdigest()
    assert data.read(unpinned()) == CONTENT
    assert data.checked(unpinned()) == (path, digest)
    state = data.state(unpinned())
    assert state.state == "unpinned"
    assert digest in (state.problem or "")
    assert leftovers(own) == [path]  # nothing is written beside a file of the user's


def test_what_was_fetched_without_a_pin_is_pinned_from_then_on(server: str, cache: Path) -> None:
    assert data.checked(unpinned(f"{server}/good")).sha256 == hashlib.sha256(CONTENT).hexdigest()
    put(cache, CONTENT[:-1])
    with pytest.raises(
        DataError, match=f"not the pinned {NAME}: SHA-256 .*, expected {hashlib.sha256(CONTENT).hexdigest()}"
    ):
        data.read(unpinned(f"{server}/good"))
    assert data.state(unpinned()).state == "bad"
    data.fetch(unpinned(f"{server}/good"))
    assert data.read(unpinned()) == CONTENT


@pytest.mark.parametrize("path", ["/short", "/absent"])
def test_an_unpinned_file_that_did_not_come_whole_is_not_kept(server: str, cache: Path, path: str) -> None:
    with pytest.raises(DataError, match=r"sent 50 of 170 bytes|IncompleteRead|answered 404"):
        data.fetch(unpinned(server + path))
    assert leftovers(cache) == []


def test_a_file_without_an_address_says_where_to_put_it(own: Path) -> None:
    with pytest.raises(DataError, match=rf"it has no public address\. Put the file \(plain or \.xz\) at {NAME} below"):
        data.read(pinned())


# ---------------------------------------------------------------- members of archives


def packed(own: Path, name: str = NAME, mode: str = "w:gz", content: bytes = CONTENT) -> DataFile:
    """A file that an archive in the user's folder holds under ``name``."""
    path = own / "toys" / "toys.tar.gz"
    with tarfile.open(path, mode) as archive:
        for member in ("toys/other.txt", name):
            info = tarfile.TarInfo(member)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    raw = path.read_bytes()
    holder = DataFile("toys/toys.tar.gz", (), hashlib.sha256(raw).hexdigest(), len(raw), "CC0")
    return DataFile(NAME, (), hashlib.sha256(CONTENT).hexdigest(), len(CONTENT), "CC0", archive=holder)


@pytest.mark.parametrize("mode", ["w:gz", "w", "w:xz"])
@pytest.mark.parametrize("name", [NAME, f"./{NAME}"])
def test_a_member_is_unpacked_into_the_cache_and_nothing_else_is(own: Path, cache: Path, mode: str, name: str) -> None:
    assert data.read(packed(own, name, mode)) == CONTENT
    assert leftovers(cache) == [cache / NAME]


def test_a_member_that_lies_in_the_users_folder_needs_no_archive(own: Path, cache: Path) -> None:
    file = packed(own)
    put(own, CONTENT)
    (own / "toys" / "toys.tar.gz").unlink()
    assert data.read(file) == CONTENT
    assert not cache.exists()


def test_an_archive_without_the_member_or_with_another_one_is_named(own: Path, cache: Path) -> None:
    with pytest.raises(DataError, match=rf"toys\.tar\.gz: holds no file {NAME}"):
        data.read(packed(own, "toys/third.txt"))
    with pytest.raises(DataError, match=rf"toys\.tar\.gz: holds SHA-256 .*, expected .* as {NAME}"):
        data.read(packed(own, content=CONTENT[::-1]))
    assert leftovers(cache) == []


def test_a_damaged_archive_is_named(own: Path, cache: Path) -> None:
    file = packed(own, mode="w")
    assert file.archive is not None
    raw = (own / file.archive.name).read_bytes()[:1_600]  # within the second member: each has 512 and 512 bytes
    (own / file.archive.name).write_bytes(raw)
    holder = DataFile(file.archive.name, (), hashlib.sha256(raw).hexdigest(), len(raw), "CC0")
    with pytest.raises(DataError, match=r"toys\.tar\.gz: is no sound archive \(.*\)\. Delete it"):
        data.read(DataFile(NAME, (), file.sha256, file.size, "CC0", archive=holder))
    assert leftovers(cache) == []


def test_a_missing_archive_is_named(own: Path) -> None:
    file = packed(own)
    (own / "toys" / "toys.tar.gz").unlink()
    with pytest.raises(DataError, match=r"^toys/toys\.tar\.gz: not on this machine"):
        data.read(file)
