"""PersonaMem's public files: a table of questions and the shared contexts, in three sizes.

The digests of the 32k files were measured, and several public projects give the same; those of the 128k files and of
the 1M questions are what public projects give. The 1M contexts have no known digest: theirs is recorded when read.
"""

from __future__ import annotations

from collections.abc import Mapping

from flexmem.benchmarks.data import DataFile

_HUB = "https://huggingface.co/datasets/bowen-upenn"
_REVISION = "a8076d5608c93ba2a28983cd78aa99b01a163ae7"


def _file(name: str, sha256: str | None, size: int | None) -> DataFile:
    addresses = (f"{_HUB}/PersonaMem-v1/resolve/{_REVISION}/{name}", f"{_HUB}/PersonaMem/resolve/main/{name}")
    return DataFile(f"personamem/{name}", addresses, sha256, size, licence="MIT")


QUESTIONS: Mapping[str, DataFile] = {
    "32k": _file("questions_32k.csv", "cccd34cf53e0bc4d9536c04cff5ca045156d9a4e227e83327112482840bbc93c", 1_305_366),
    "128k": _file("questions_128k.csv", "f0e137c3167fadbffbce5be2786105283c3299972c4ac1f158939155fd1578a7", None),
    "1M": _file("questions_1M.csv", "f24db37c1ef49e8f3cc6585da3d7e1638bb9bfb32c95df4de065e4666e448e1f", None),
}
CONTEXTS: Mapping[str, DataFile] = {
    "32k": _file(
        "shared_contexts_32k.jsonl", "217247ebfec9e8442fc53570c795ab69f21aad08745f7de78d9beab51b122d4a", 5_613_210
    ),
    "128k": _file(
        "shared_contexts_128k.jsonl", "733cc009e84a138b386c9e40adea741565db01074f73af4058fd039b42951726", None
    ),
    "1M": _file("shared_contexts_1M.jsonl", None, None),
}
FILES = tuple(file for size in QUESTIONS for file in (QUESTIONS[size], CONTEXTS[size]))
