"""MSC's public archive and the dialogue files in it.

ParlAI itself pins the archive; of sessions 2 and 3, valid and test, the members' digests were measured. The others have
none of their own: taken out of the archive they are what it pins, lying elsewhere their digest is recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from flexmem.benchmarks.data import DataFile

Part = Literal["train", "valid", "test"]
LAST_SESSIONS = (2, 3, 4, 5)

LICENCE = "none stated"

ARCHIVE = DataFile(
    name="msc/msc_v0.1.tar.gz",
    addresses=(
        "https://parl.ai/downloads/msc/msc_v0.1.tar.gz",
        "https://dl.fbaipublicfiles.com/parlai/msc/msc_v0.1.tar.gz",
    ),
    sha256="e640e37cf4317cd09fc02a4cd57ef130a185f23635f4003b0cee341ffcb45e60",
    size=None,
    licence=LICENCE,
)

_PINNED: Mapping[tuple[int, Part], tuple[str, int]] = {
    (2, "valid"): ("650916cb1fcd430d9b7f83ffbac6b6711b9e6c2ddf3b1a9cac9696cb3b66a0b4", 2_261_551),
    (2, "test"): ("fd0ca62ebcd91fd9d25d3a3933b40d3df3033efb0d26a2b8205738a285067a75", 2_144_789),
    (3, "valid"): ("752caabd8a56dce86861a81ec579d1f2c56411495a461a7c08d0266f5eec5b66", 3_447_062),
    (3, "test"): ("1f114489f05d3ce69291f8f5b6d1adc2d36f77268a2cf3bd286a68dab69018fe", 3_375_206),
}


def _member(session: int, part: Part) -> DataFile:
    sha256, size = _PINNED.get((session, part), (None, None))
    name = f"msc/msc_dialogue/session_{session}/{part}.txt"
    return DataFile(name, (), sha256, size, LICENCE, archive=ARCHIVE)


_PARTS: tuple[Part, ...] = ("train", "valid", "test")
DIALOGUES: Mapping[tuple[int, Part], DataFile] = {
    (session, part): _member(session, part)
    for session in LAST_SESSIONS
    for part in _PARTS
    if (session, part) != (5, "train")  # session 5 is for evaluation only
}
FILES = (ARCHIVE, *DIALOGUES.values())
