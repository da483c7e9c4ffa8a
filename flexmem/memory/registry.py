"""Which methods there are: the built-in ones, and others' through the entry point group ``flexmem.methods``.

A module that holds methods has a tuple ``METHODS`` of `MethodSpec`; an entry point names such a module or such a tuple.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from pydantic import ValidationError

from flexmem.memory.protocol import MemoryBuild, MethodConfig, MethodError, MethodInfo
from flexmem.ports import Services

ENTRY_POINTS = "flexmem.methods"

BUILTIN = (
    "flexmem.memory.flexa.methods",
    "flexmem.memory.baselines.truncation",
    "flexmem.memory.baselines.observation_masking",
    "flexmem.memory.baselines.piece_retrieval",
    "flexmem.memory.baselines.dense_units",
    "flexmem.memory.baselines.dense_pieces",
    "flexmem.memory.baselines.hybrid_pieces",
    "flexmem.memory.fused.fused_pieces",
    "flexmem.memory.baselines.tool_memory.methods",
    "flexmem.memory.baselines.amem.methods",
    "flexmem.memory.baselines.memory_evolution",
    "flexmem.memory.baselines.afm",
    "flexmem.memory.baselines.llm_granularity",
    "flexmem.memory.baselines.raptor.methods",
    "flexmem.memory.baselines.memtree",
    "flexmem.memory.baselines.memgas.methods",
    "flexmem.memory.baselines.summary",
    "flexmem.memory.baselines.summary_amem",
    "flexmem.memory.baselines.readagent",
    "flexmem.memory.baselines.scm",
)


class UnknownMethodError(MethodError, KeyError):
    """No method of that name, or a configuration that the method does not have."""

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True)
class MethodSpec:
    """A registered method: what it declares, its default configuration, and how a build is made.

    ``declares`` adjusts the declared properties to a configuration (a record writer by model, for one).
    """

    info: MethodInfo
    config: MethodConfig
    make: Callable[[Any, Services], MemoryBuild]
    declares: Callable[[Any, MethodInfo], MethodInfo] | None = None

    def configured(self, overrides: Mapping[str, Any] | None = None) -> ConfiguredMethod:
        """The method with some of its default configuration replaced.

        Raises:
            UnknownMethodError: a key that the configuration does not have, or a value that it does not take.
        """
        if not overrides:
            return ConfiguredMethod(self._info(self.config), self.config, self.make)
        fields = type(self.config).model_fields
        for key in overrides:
            if key not in fields:
                near = difflib.get_close_matches(key, fields, 1)
                hint = f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(fields) or 'none'}"
                raise UnknownMethodError(f"method {self.info.name!r} has no option {key!r}{hint}")
        try:
            config = type(self.config).model_validate({**self.config.model_dump(), **overrides})
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise UnknownMethodError(f"method {self.info.name!r}, option {place}: {first['msg']}") from error
        return ConfiguredMethod(self._info(config), config, self.make)

    def _info(self, config: MethodConfig) -> MethodInfo:
        return self.declares(config, self.info) if self.declares else self.info


@dataclass(frozen=True)
class ConfiguredMethod:
    """A method ready to build (`flexmem.memory.protocol.Method`)."""

    info: MethodInfo
    config: MethodConfig
    make: Callable[[Any, Services], MemoryBuild]

    def build(self, services: Services) -> MemoryBuild:
        """An empty build."""
        return self.make(self.config, services)


@cache
def methods() -> Mapping[str, MethodSpec]:
    """All methods by name. A broken entry point warns and does not stop the others; a name that is taken is refused
    with a warning.
    """
    found: dict[str, MethodSpec] = {}
    for module in BUILTIN:
        _register(found, importlib.import_module(module).METHODS, module)
    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS):
        try:
            loaded = entry.load()
            _register(found, getattr(loaded, "METHODS", loaded), entry.value)
        except Exception as error:  # noqa: BLE001 - whatever a plug-in raises must not stop the others
            warnings.warn(f"methods of {entry.value!r} are left out: {error!r}", stacklevel=2)
    return found


def find_method(name: str) -> MethodSpec:
    """The method of that name.

    Raises:
        UnknownMethodError: there is none; the message has the nearest name.
    """
    known = methods()
    if name not in known:
        near = difflib.get_close_matches(name, known, 1)
        raise UnknownMethodError(
            f"unknown method {name!r}" + (f"; did you mean {near[0]!r}?" if near else "; see `flexmem methods`")
        )
    return known[name]


def registered_as(spec: MethodSpec, name: str, summary: str, **changes: Any) -> MethodSpec:
    """A method under a name of its own with some options of another changed."""
    info = replace(spec.info, name=name, summary=summary)
    return replace(spec, info=info, config=spec.config.model_copy(update=changes))


def variant(spec: MethodSpec, suffix: str, summary: str, **changes: Any) -> MethodSpec:
    """A named variant ``name.suffix`` of a method with some options changed."""
    return registered_as(spec, f"{spec.info.name}.{suffix}", summary, **changes)


def _register(found: dict[str, MethodSpec], specs: Iterable[MethodSpec], source: str) -> None:
    for spec in specs:
        if spec.info.name in found:
            warnings.warn(f"method {spec.info.name!r} of {source} is left out: the name is taken", stacklevel=3)
            continue
        found[spec.info.name] = spec
