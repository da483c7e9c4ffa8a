"""``dense_units``: whole units by cosine, filled by rank (docs/methods.md B.1)."""

from __future__ import annotations

from flexmem.history import Unit
from flexmem.memory.assemble import assemble, require_room
from flexmem.memory.base import IndexedBuild
from flexmem.memory.filling import fill_by_rank
from flexmem.memory.protocol import Budget, FidelityCard, MethodConfig, MethodInfo, Query, Rendering
from flexmem.memory.registry import MethodSpec
from flexmem.memory.unit_forms import raw_fragment
from flexmem.memory.vectors import GrowingVectors
from flexmem.ports import IndexConfig, Services
from flexmem.retrieval.dense import inner_products
from flexmem.retrieval.ordering import order_by_cosine


class DenseUnitsConfig(MethodConfig):
    """Nothing to set."""


class DenseUnitsBuild(IndexedBuild):
    """Units with e(unit)."""

    def __init__(self, config: DenseUnitsConfig, services: Services) -> None:
        super().__init__("dense_units", config, services, IndexConfig(dense=False))
        self.vectors = GrowingVectors(services.embedder.dimension)
        """Row u is e(unit u)."""

    def view(self) -> DenseUnitsView:
        return DenseUnitsView(self)

    async def written(self, unit: Unit) -> None:
        self.vectors.append((await self.services.embedder.embed([unit.text]))[0])

    async def restore_extra(self, extra: dict[str, object]) -> None:
        for vector in await self.services.embedder.embed([unit.text for unit in self.units]):
            self.vectors.append(vector)


class DenseUnitsView:
    """Reading changes nothing."""

    def __init__(self, build: DenseUnitsBuild) -> None:
        self._build = build

    async def render(self, query: Query, budget: Budget) -> Rendering:
        """Units whole, in order of their cosine while they fit, shown in time order (`MemoryView.render`)."""
        require_room(budget.room, 0, "nothing")
        build = self._build
        order = order_by_cosine(inner_products(build.vectors.array, query.vector)).tolist()
        chosen = fill_by_rank(order, build.table.unit_tokens.__getitem__, budget.room)
        return assemble([raw_fragment(build, uid) for uid in sorted(chosen)], ranking=order)


METHODS = (
    MethodSpec(
        MethodInfo(
            name="dense_units",
            family="no written memory",
            summary="whole units by cosine with the query, filled by rank",
            card=FidelityCard(
                source="common dense retrieval over FlexA-Mem's units; the paper names no such baseline",
                follows="the units and the embedder that all methods share",
                ours="the method itself",
                differs="nothing to differ from",
                tuning="nothing tuned",
            ),
        ),
        DenseUnitsConfig(),
        DenseUnitsBuild,
    ),
)
