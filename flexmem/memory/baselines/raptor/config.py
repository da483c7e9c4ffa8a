"""RAPTOR's values (docs/methods.md B.8)."""

from __future__ import annotations

from pydantic import Field

from flexmem.memory.protocol import MethodConfig


class ClusterRules(MethodConfig):
    """How nodes are clustered; the code's defaults."""

    dimensions: int = Field(10, ge=2)
    """UMAP reduces vectors to this many."""
    local_neighbours: int = Field(10, ge=2)
    """UMAP's neighbours within a cluster; the square root of the nodes less one over all of them."""
    most_components: int = Field(50, ge=2)
    """Mixtures of fewer components than this are compared by BIC."""
    membership: float = Field(0.1, ge=0, lt=1)
    """A node is in every cluster that it belongs to with a greater probability."""
    cluster_tokens: int = Field(3_500, ge=1)
    """A cluster with more is clustered again."""
    seed: int = 0
    """UMAP's and the mixtures'. The code pins the mixtures' and not UMAP's."""


class RaptorConfig(MethodConfig):
    """The tree and what is read of it."""

    piece_tokens: int = Field(100, ge=8)
    """A leaf's tokens at most; the code's chunks."""
    summary_tokens: int = Field(100, ge=8)
    """A summary's cut; the code's."""
    summary_words: int = Field(75, ge=1)
    """Ours: what is asked for, since models count words better; three words take about four tokens."""
    layers: int = Field(5, ge=0)
    """Layers of summaries at most; the code's."""
    regrow: float = Field(0.25, ge=0)
    """Ours, for agents, whose memory is read between writes: the tree is built anew once its leaves have grown by more
    than this share, so that an episode pays for a few trees instead of one a step; newer pieces are leaves without a
    summary until then. A reader's is built once all is written.
    """
    top_k: int | None = Field(None, ge=1)
    """The paper's fixed number: only the best of these, and none after the first that does not fit. None: the room."""
    most_tokens: int | None = Field(None, ge=1)
    """The paper's limit of what is read. None: the room."""
    clusters: ClusterRules = ClusterRules()
