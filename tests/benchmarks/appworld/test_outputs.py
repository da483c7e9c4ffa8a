"""Outputs that a hostile sandbox hands over, and the data that it may see."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from flexmem.benchmarks.appworld.bare_data import bare_data
from flexmem.benchmarks.appworld.outputs import unpack
from flexmem.benchmarks.protocol import DataMissingError
from flexmem.sandbox.errors import SandboxBrokenError, SandboxError

MOST = 1 << 20


def packed(*members: tuple[str, bytes | None], kind: bytes = tarfile.REGTYPE, link: str = "") -> bytes:
    """A gzipped tar; content None makes a member of ``kind``."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, content in members:
            entry = tarfile.TarInfo(name)
            if content is None:
                entry.type, entry.linkname = kind, link
                tar.addfile(entry)
            else:
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_files_and_folders_take_the_place_of_earlier_ones(tmp_path: Path) -> None:
    target = tmp_path / "x" / "t"
    unpack(packed(("./old", b"1")), target, MOST)
    unpack(packed((".", None), ("./dbs", None), ("./dbs/a.jsonl", b"2"), kind=tarfile.DIRTYPE), target, MOST)
    assert everything(tmp_path) == {"x/t/dbs/a.jsonl": b"2"}


@pytest.mark.parametrize(
    "archive",
    [
        packed(("/abs", b"1")),
        packed(("a/../../out", b"1")),
        packed(("link", None), kind=tarfile.SYMTYPE, link="/etc"),
        packed(("link", None), kind=tarfile.LNKTYPE, link="/etc/passwd"),
        packed(("pipe", None), kind=tarfile.FIFOTYPE),
        packed(("device", None), kind=tarfile.CHRTYPE),
        packed(("large", b"0" * (MOST + 1))),
        packed(*((f"half{n}", b"0" * (MOST // 2 + 1)) for n in range(2))),
        packed(*((f"f{n}", b"") for n in range(2_001))),
        packed(("a", b"1"), ("a", b"2")),
        packed(("a", b"1"), ("a/b", b"2")),
        packed(("a", b"1" * 1_000))[:-40],
        b"no tar",
        b"",
    ],
    ids=lambda archive: f"{len(archive)} bytes",
)
def test_whatever_is_no_plain_file_below_the_folder_is_refused(tmp_path: Path, archive: bytes) -> None:
    inside = tmp_path / "experiments"
    inside.mkdir()
    with pytest.raises((SandboxBrokenError, SandboxError)):
        unpack(archive, inside / "t", MOST)
    assert list(tmp_path.rglob("*")) == [inside]


def test_data_is_seen_without_ground_truth(tmp_path: Path) -> None:
    data = tmp_path / "root" / "data"
    for name in ("version.txt", "tasks/a_1/specs.json", "tasks/a_1/dbs/x.jsonl", "tasks/a_1/ground_truth/answer.json"):
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_text(name)
    (data / "tasks/a_1/dbs/x.jsonl").chmod(0o600)
    seen = bare_data(tmp_path / "root", tmp_path / "cache")
    assert sorted(everything(seen)) == ["tasks/a_1/dbs/x.jsonl", "tasks/a_1/specs.json", "version.txt"]
    assert all(path.stat().st_mode & 0o004 for path in seen.rglob("*"))
    assert (data / "tasks/a_1/dbs/x.jsonl").stat().st_mode & 0o777 == 0o600
    assert bare_data(tmp_path / "root", tmp_path / "cache") == seen
    (data / "tasks/a_1/specs.json").write_text("changed")
    assert bare_data(tmp_path / "root", tmp_path / "cache") != seen


def test_a_root_without_tasks_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataMissingError, match="tasks"):
        bare_data(tmp_path, tmp_path / "cache")
