"""MemGAS's registered form."""

from __future__ import annotations

from flexmem.memory.baselines.memgas.build import MemgasBuild
from flexmem.memory.baselines.memgas.config import MemgasConfig
from flexmem.memory.protocol import FidelityCard, MethodInfo
from flexmem.memory.registry import MethodSpec

METHODS = (
    MethodSpec(
        MethodInfo(
            name="memgas",
            prompts=("memgas_notes",),
            family="related work",
            summary="sessions at four granularities, linked by mixtures, weighed by entropy, ranked by random walk",
            card=FidelityCard(
                source="MemGAS, arXiv 2505.19549, and its code (quqxui/MemGAS)",
                follows="four nodes a session (text, mean of turns, summary, keywords); links from the sixth session "
                "on to the higher component of a mixture of two over the most similar earlier nodes; weights of "
                "granularities by entropy at temperature 0.1; 15 seeds; personalised PageRank with damping 0.1; a "
                "session's score is its four nodes' sum",
                ours="an agent's session is a unit; summary and keywords come of one reply a unit, a longer session's "
                "are its units' put together; lengths; units are shown raw while they fit, else as their summary; "
                "filling by rank in place of a fixed number of sessions",
                differs="the code weighs by (1 - H) / sum(1 - H) with H in nats, which is above 1 as soon as a few "
                "sessions are alike and then gives the least telling granularity the highest weight: here H is divided "
                "by its maximum, ln of the sessions; of equal scores at the last seed the earlier nodes are taken, not "
                "all; the model's filter over what was retrieved is left out, since every method hands its memory "
                "itself to the reader",
                tuning="nothing tuned; lengths are FlexA-Mem's",
            ),
            writes_with_model=True,
        ),
        MemgasConfig(),
        MemgasBuild,
    ),
)
