"""RAPTOR's clusters: UMAP and Gaussian mixtures, over all nodes and again within each cluster (docs/methods.md B.8)."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flexmem.history import pack
from flexmem.memory.baselines.mixtures import fit_mixture, repeatable
from flexmem.memory.baselines.raptor.config import ClusterRules
from flexmem.ports import FloatArray, VectorArray

Cluster = tuple[int, ...]

_ONE_AT_A_TIME = threading.Lock()  # UMAP's compiled loops end the process where two threads run them at once
_KEPT = 64
_EXACT = 4_096  # nodes up to which all distances are computed; UMAP itself changes its search there
_kept: OrderedDict[bytes, list[Cluster]] = OrderedDict()


def cluster(vectors: VectorArray, sizes: Sequence[int], rules: ClusterRules) -> list[Cluster]:
    """Clusters of the nodes with these vectors, shape (nodes, dimension), and tokens, each in order; a node can be in
    several. What depends on neither question nor model is worked out once a process: builds of several repeats, or of
    several memory models, have the same leaves.
    """
    key = hashlib.blake2b(repr((vectors.shape, list(sizes), rules)).encode(), digest_size=16)
    key.update(np.ascontiguousarray(vectors).tobytes())
    with _ONE_AT_A_TIME:
        found = _kept.pop(key.digest(), None)
        if found is None:
            with repeatable():
                found = _clusters(vectors, sizes, np.arange(len(vectors)), rules)
        _kept[key.digest()] = found
        while len(_kept) > _KEPT:
            _kept.popitem(last=False)
    return found


def _clusters(
    vectors: VectorArray, sizes: Sequence[int], nodes: NDArray[np.int64], rules: ClusterRules
) -> list[Cluster]:
    """Clusters of some nodes, none with more than ``cluster_tokens`` unless it is a single node."""
    made: dict[Cluster, None] = {}
    for group in _one_level(vectors[nodes], rules):
        members = nodes[group]
        if len(members) == 1 or sum(sizes[node] for node in members) <= rules.cluster_tokens:
            made[tuple(members.tolist())] = None
        elif len(members) < len(nodes) and len(members) > rules.dimensions + 1:
            made.update(dict.fromkeys(_clusters(vectors, sizes, members, rules)))
        else:  # too few to be clustered, or all in one again: cut in order
            runs = pack([sizes[node] for node in members], rules.cluster_tokens)
            made.update(dict.fromkeys(tuple(members[first:past].tolist()) for first, past in runs))
    return sorted(made)


def _one_level(vectors: VectorArray, rules: ClusterRules) -> list[NDArray[np.int64]]:
    """Clusters over all nodes, each clustered once more by itself where it is large enough."""
    everybody = np.arange(len(vectors))
    if len(vectors) <= rules.dimensions + 1:
        return [everybody]
    found = []
    for group in _soft(_reduced(vectors, int((len(vectors) - 1) ** 0.5), rules), rules):
        if len(group) <= rules.dimensions + 1:
            found.append(group)
            continue
        inner = _soft(_reduced(vectors[group], rules.local_neighbours, rules), rules)
        found += [group[part] for part in inner]
    return found


def _reduced(vectors: VectorArray, neighbours: int, rules: ClusterRules) -> FloatArray:
    """The vectors in fewer dimensions, by cosine; in double precision, since points that are alike need it.

    UMAP magnifies the last bit of what it starts from, and a BLAS product or an eigenvector differs in it from process
    to process. So it starts at random places that the seed gives, not at the graph's eigenvectors, and up to `_EXACT`
    nodes with distances whose bits depend on the vectors alone.
    """
    from umap import UMAP

    exact = len(vectors) <= _EXACT
    reducer = UMAP(
        n_neighbors=neighbours,
        n_components=min(rules.dimensions, len(vectors) - 2),
        metric="precomputed" if exact else "cosine",
        init="random",
        random_state=rules.seed,
        n_jobs=1,
    )
    reduced: FloatArray = reducer.fit_transform(_distances(vectors) if exact else vectors).astype(np.float64)
    return reduced


def _distances(vectors: VectorArray) -> FloatArray:
    """1 - cosine of every two, shape (nodes, nodes), 0 on the diagonal."""
    distances: FloatArray = np.clip(
        1.0 - np.vecdot(vectors[:, None, :], vectors[None, :, :]).astype(np.float64), 0, None
    )
    np.fill_diagonal(distances, 0)
    return distances


def _soft(points: FloatArray, rules: ClusterRules) -> list[NDArray[np.int64]]:
    """Members of each component, none empty, of the mixture with the least BIC. A number of components that can't be
    fitted, since too many points are alike, is out of the running; where none can, all points are one cluster.
    """
    best: Any = None
    least = np.inf
    for components in range(1, min(rules.most_components, len(points))):
        try:
            mixture = fit_mixture(points, components, rules.seed)
        except ValueError:
            continue
        bic = float(mixture.bic(points))
        if bic < least:
            best, least = mixture, bic
    if best is None:
        return [np.arange(len(points))]
    odds: FloatArray = best.predict_proba(points)
    members = [np.flatnonzero(column > rules.membership) for column in odds.T]
    return [group for group in members if len(group)]
