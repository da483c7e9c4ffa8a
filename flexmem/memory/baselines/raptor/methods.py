"""RAPTOR's registered forms."""

from __future__ import annotations

from flexmem.memory.baselines.raptor.build import RaptorBuild
from flexmem.memory.baselines.raptor.config import RaptorConfig
from flexmem.memory.protocol import FidelityCard, MethodInfo
from flexmem.memory.registry import MethodSpec, variant

RAPTOR = MethodSpec(
    MethodInfo(
        name="raptor",
        prompts=("raptor_summary",),
        family="related work",
        summary="clusters of pieces summed up layer by layer by the memory model; all nodes by cosine fill the room",
        card=FidelityCard(
            source="RAPTOR, arXiv 2401.18059, and its code (parthsarthi03/raptor)",
            follows="leaves of 100 tokens; UMAP to 10 dimensions by cosine, over all nodes with the square root of "
            "their number for neighbours and again within each cluster with 10; Gaussian mixtures of fewer than 50 "
            "components, the least BIC, membership above 0.1; clusters above 3,500 tokens clustered again; summaries "
            "of 100 tokens; at most 5 layers, none over 11 nodes or fewer; retrieval over all nodes at once (collapsed "
            "tree)",
            ours="leaves are the history's pieces, which keep to turns and steps; the tree is made when it is read "
            "first and is kept; an agent's is made anew once its leaves have grown by a quarter, and newer pieces are "
            "leaves alone until then; a cluster whose members are the same keeps its summary; filling by rank in place "
            "of 10 nodes and 3,500 tokens (raptor.paper_k has those); pieces shown by unit in time order. Evidence "
            "visibility applies: most nodes are leaves, which are shown word for word, and it counts those alone",
            differs="UMAP has a seed, starts at random places and not at eigenvectors, and gets exact distances, so "
            "that a tree can be made again (on machines of one kind: its compiled code may differ between "
            "processors); mixtures have one seed, not two; a large cluster that can't be clustered further is cut in "
            "order, where the code would not end",
            tuning="nothing tuned; the share at which an agent's tree is made anew set once",
        ),
        reads_with_model=True,
    ),
    RaptorConfig(),
    RaptorBuild,
)

METHODS = (
    RAPTOR,
    variant(RAPTOR, "paper_k", "as raptor; the best 10 nodes, of 3,500 tokens at most", top_k=10, most_tokens=3_500),
)
