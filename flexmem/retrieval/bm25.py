"""Okapi BM25 over a history that grows (docs/methods.md A.3): an append-only inverted index, its frozen form, and
rank-bm25 as the reference.

Scores are those of ``rank_bm25.BM25Okapi``: equal to rounding where its mean idf is positive. Where a term's idf is
negative rank-bm25 takes epsilon times the mean idf, which on two or three pieces is negative itself, so that a match
would rank under a non-match; here that value is never below `Bm25Parameters.floor`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any, Protocol, cast
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from rank_bm25 import BM25Okapi

from flexmem.ports import FloatArray, IntArray


class FrozenIndexError(RuntimeError):
    """A frozen index was asked to grow."""


@dataclass(frozen=True, slots=True)
class Bm25Parameters:
    """rank-bm25's defaults (docs/methods.md A.2) and ``floor``, the least value of a term whose idf is negative
    (A.3).
    """

    k1: float = 1.5
    b: float = 0.75
    epsilon: float = 0.25
    floor: float = 0.01


class Bm25Index(Protocol):
    """Documents as word lists, scored against a query's words. Document i is row i of the scores."""

    def __len__(self) -> int: ...

    def append(self, words: Sequence[str]) -> None:
        """Add the next document; it may be empty."""
        ...

    def scores(self, query: Sequence[str]) -> FloatArray:
        """Shape (documents,). A repeated query word counts each time; unknown words count nothing."""
        ...


class _Okapi(ABC):
    """The scoring that the live and the frozen index share, so that their results are equal to the bit."""

    def __init__(self, parameters: Bm25Parameters) -> None:
        self.parameters = parameters
        self._mean_idf: float | None = None
        self._norms: FloatArray | None = None

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def _postings(self, words: Sequence[str]) -> list[Any]:
        """For each word a buffer of C ints, alternately document and frequency, in document order; None if unknown."""

    @abstractmethod
    def _lengths(self) -> tuple[NDArray[Any], int]:
        """Words of each document, and of all."""

    @abstractmethod
    def _document_frequencies(self) -> tuple[IntArray, IntArray]:
        """The document frequencies that occur, ascending, and how many words have each."""

    def scores(self, query: Sequence[str]) -> FloatArray:
        """Okapi scores of all documents, shape (documents,); see `Bm25Index.scores`."""
        documents = len(self)
        times = Counter(query)
        found, sizes, weights = [], [], []
        for posting, repeats in zip(self._postings(list(times)), times.values(), strict=True):
            if posting is not None:
                size = len(posting) // 2
                idf = math.log(documents - size + 0.5) - math.log(size + 0.5)
                found.append(posting)
                sizes.append(size)
                weights.append(repeats * (idf if idf >= 0 else self._floor()))
        if not found:
            return np.zeros(documents)
        # One join and one bincount for the whole query: numpy's cost a call would dominate a call a word. bincount adds
        # in the order of the query's words, as rank-bm25 does.
        joined = np.frombuffer(b"".join(found), dtype=np.intc)
        rows, frequencies = joined[::2], joined[1::2]
        k1 = self.parameters.k1
        saturation = frequencies * (k1 + 1) / (frequencies + self._length_norms()[rows])
        scores = np.bincount(rows, np.repeat(weights, sizes) * saturation, minlength=documents)
        return cast(FloatArray, scores)  # numpy's stubs miss that weights make it float64

    def _floor(self) -> float:
        if self._mean_idf is None:
            frequencies, words = self._document_frequencies()
            idf = np.log(len(self) - frequencies + 0.5) - np.log(frequencies + 0.5)
            self._mean_idf = float((words * idf).sum()) / int(words.sum())
        return max(self.parameters.floor, self.parameters.epsilon * self._mean_idf)

    def _length_norms(self) -> FloatArray:
        if self._norms is None:
            lengths, total = self._lengths()
            k1, b = self.parameters.k1, self.parameters.b
            self._norms = k1 * (1 - b + b * lengths / (total / len(self)))
        return self._norms


class Bm25(_Okapi):
    """The live index. An append costs time in the document's length, whatever the number of documents (amortised)."""

    def __init__(self, parameters: Bm25Parameters | None = None) -> None:
        super().__init__(parameters or Bm25Parameters())
        self._by_word: dict[str, array[int]] = {}
        self._document_lengths = array("q")
        self._total = 0
        self._at_least = array("q", [0])  # [f]: words in at least f documents; one increment an occurrence keeps it

    def __len__(self) -> int:
        return len(self._document_lengths)

    def append(self, words: Sequence[str]) -> None:
        """Add the next document; it may be empty."""
        document = len(self._document_lengths)
        by_word, at_least = self._by_word, self._at_least
        for word, frequency in Counter(words).items():
            posting = by_word.get(word)
            if posting is None:
                by_word[word] = array("i", (document, frequency))
                size = 1
            else:
                posting.append(document)
                posting.append(frequency)
                size = len(posting) >> 1
            if size == len(at_least):
                at_least.append(1)
            else:
                at_least[size] += 1
        self._document_lengths.append(len(words))
        self._total += len(words)
        self._mean_idf = self._norms = None

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The whole index as flat arrays, read back by `FrozenBm25`; equal documents give equal arrays.

        ``hashes`` (words,) CRC-32, ascending; ``names`` bytes and ``name_offsets`` (words + 1,) the words in that
        order; ``postings`` document and frequency alternately, word by word, and ``posting_offsets`` (words + 1,) where
        each word's begin; ``lengths`` (documents,); ``parameters`` (4,).
        """
        coded = {word: word.encode("utf-8", "surrogatepass") for word in self._by_word}
        words = sorted(coded, key=lambda word: (crc32(coded[word]), coded[word]))
        names = b"".join(coded[word] for word in words)
        postings = b"".join(self._by_word[word] for word in words)
        return {
            "hashes": np.array([crc32(coded[word]) for word in words], dtype=np.uint32),
            "names": np.frombuffer(names, dtype=np.uint8),
            "name_offsets": _offsets([len(coded[word]) for word in words]),
            "postings": np.frombuffer(postings, dtype=np.intc),
            "posting_offsets": _offsets([len(self._by_word[word]) for word in words]),
            "lengths": np.array(self._document_lengths, dtype=np.int64),
            "parameters": np.array(astuple(self.parameters), dtype=np.float64),
        }

    def _postings(self, words: Sequence[str]) -> list[Any]:
        return [self._by_word.get(word) for word in words]

    def _lengths(self) -> tuple[NDArray[Any], int]:
        return np.frombuffer(self._document_lengths, dtype=np.int64), self._total

    def _document_frequencies(self) -> tuple[IntArray, IntArray]:
        words = -np.diff(np.frombuffer(self._at_least, dtype=np.int64)[1:], append=0)
        occurring = np.flatnonzero(words)
        return occurring + 1, words[occurring]


class FrozenBm25(_Okapi):
    """A read-only index over the arrays of `Bm25.arrays`, used in place: nothing is copied, and no dictionary is built,
    so that many processes can share one.
    """

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        super().__init__(Bm25Parameters(*arrays["parameters"].tolist()))
        self._hashes = arrays["hashes"]
        self._names = arrays["names"].data
        self._name_offsets = arrays["name_offsets"]
        self._entries = arrays["postings"].data
        self._entry_offsets = arrays["posting_offsets"]
        self._document_lengths = arrays["lengths"]

    def __len__(self) -> int:
        return len(self._document_lengths)

    def append(self, words: Sequence[str]) -> None:
        """Refused.

        Raises:
            FrozenIndexError: always.
        """
        raise FrozenIndexError("this BM25 index is frozen and shared; append to a live Bm25 instead")

    def _postings(self, words: Sequence[str]) -> list[Any]:
        coded = [word.encode("utf-8", "surrogatepass") for word in words]
        hashes = [crc32(name) for name in coded]
        firsts = np.searchsorted(self._hashes, np.array(hashes, dtype=np.uint32)).tolist()
        return [self._posting(*word) for word in zip(coded, hashes, firsts, strict=True)]

    def _posting(self, name: bytes, hashed: int, first: int) -> memoryview | None:
        for row in range(first, len(self._hashes)):
            if self._hashes[row] != hashed:
                break
            if self._names[self._name_offsets[row] : self._name_offsets[row + 1]] == name:
                return self._entries[self._entry_offsets[row] : self._entry_offsets[row + 1]]
        return None

    def _lengths(self) -> tuple[NDArray[Any], int]:
        return self._document_lengths, int(self._document_lengths.sum())

    def _document_frequencies(self) -> tuple[IntArray, IntArray]:
        frequencies, words = np.unique(np.diff(self._entry_offsets) // 2, return_counts=True)
        return frequencies, words


class RankBm25:
    """rank-bm25 behind the same interface: the reference, without our floor. It is rebuilt whole at the first query
    after an append.
    """

    def __init__(self, parameters: Bm25Parameters | None = None) -> None:
        self.parameters = parameters or Bm25Parameters()
        self._documents: list[list[str]] = []
        self._built: Any = None

    def __len__(self) -> int:
        return len(self._documents)

    def append(self, words: Sequence[str]) -> None:
        """Add the next document; it may be empty."""
        self._documents.append(list(words))
        self._built = None

    def scores(self, query: Sequence[str]) -> FloatArray:
        """See `Bm25Index.scores`; zeros where no document has a word, for which rank-bm25 itself is undefined."""
        if not any(self._documents):
            return np.zeros(len(self))
        if self._built is None:
            p = self.parameters
            self._built = BM25Okapi(self._documents, k1=p.k1, b=p.b, epsilon=p.epsilon)
        return np.asarray(self._built.get_scores(query), dtype=np.float64)


def _offsets(sizes: Sequence[int]) -> IntArray:
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets
