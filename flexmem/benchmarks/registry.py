"""The benchmarks by name. A module is imported only when its benchmark is asked for."""

from __future__ import annotations

import difflib
import typing
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from flexmem.benchmarks.data import DataFile
from flexmem.benchmarks.protocol import Benchmark, BenchmarkConfig
from flexmem.errors import FlexmemError

if TYPE_CHECKING:
    from flexmem.memory.protocol import TaskKind

BENCHMARKS: Mapping[str, str] = {
    "appworld": "flexmem.benchmarks.appworld.benchmark:AppWorldBenchmark",
    "context_bound": "flexmem.benchmarks.context_bound.benchmark:ContextBoundBenchmark",
    "locomo": "flexmem.benchmarks.locomo.benchmark:LocomoBenchmark",
    "longmemeval": "flexmem.benchmarks.longmemeval.benchmark:LongMemEvalBenchmark",
    "personamem": "flexmem.benchmarks.personamem.benchmark:PersonaMemBenchmark",
    "synthetic": "flexmem.benchmarks.synthetic:SyntheticBenchmark",
}

CORPORA: Mapping[str, str] = {
    "msc": "flexmem.benchmarks.msc.files:FILES",
}
"""Histories without questions, for training, by name: where their files are listed."""


class BenchmarkOptionError(FlexmemError, ValueError):
    """No such benchmark, no such option, or a value that it can't have; the message names the nearest that exists."""


def make_benchmark(name: str, options: Mapping[str, Any] | None = None) -> Benchmark:
    """The benchmark ``name``, configured; reads no data.

    Raises:
        BenchmarkOptionError: unknown name or key, or an invalid value.
    """
    benchmark = benchmark_class(name)
    try:
        config = config_class(name).model_validate(dict(options or {}))
    except ValidationError as error:
        raise BenchmarkOptionError(_explain(name, error)) from error
    made: Benchmark = benchmark(config)
    return made


def benchmark_class(name: str) -> Any:
    """The class behind ``name``: called with its config, it gives a `Benchmark`.

    Raises:
        BenchmarkOptionError: unknown name.
    """
    if name in CORPORA:
        raise BenchmarkOptionError(f"{name!r} has no questions, so is no benchmark; there are {', '.join(BENCHMARKS)}")
    if name not in BENCHMARKS:
        raise BenchmarkOptionError(f"no benchmark {name!r}{_near(name, BENCHMARKS)}; there are {', '.join(BENCHMARKS)}")
    return _attribute(BENCHMARKS[name])


def task_of(name: str) -> TaskKind:
    """Whether ``name`` has questions for a reader or tasks for an agent.

    Raises:
        BenchmarkOptionError: unknown name.
    """
    return "agent" if hasattr(benchmark_class(name), "environments") else "reader"


def config_class(name: str) -> type[BenchmarkConfig]:
    """The options' class of ``name``: what its constructor's ``config`` is annotated with.

    Raises:
        BenchmarkOptionError: unknown name.
    """
    annotation = typing.get_type_hints(benchmark_class(name).__init__)["config"]
    candidates = typing.get_args(annotation) or (annotation,)
    return next(kind for kind in candidates if isinstance(kind, type) and issubclass(kind, BenchmarkConfig))


def known_files() -> list[DataFile]:
    """Every public file that some benchmark or corpus reads, for ``flexmem data``; once each."""
    files: dict[str, DataFile] = {}
    for name in BENCHMARKS:
        for file in getattr(benchmark_class(name), "data_files", ()):
            files[file.name] = file
    for place in CORPORA.values():
        for file in _attribute(place):
            files[file.name] = file
    return list(files.values())


def _attribute(place: str) -> Any:
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)


def _explain(name: str, error: ValidationError) -> str:
    known = config_class(name).model_fields
    problems = []
    for problem in error.errors(include_url=False):
        key = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            problems.append(f"no option {key!r}{_near(key, known)}; there are {', '.join(known) or 'none'}")
        else:
            problems.append(f"option {key!r}: {problem['msg']} (got {problem['input']!r})")
    return f"benchmark {name!r}: " + "; ".join(problems)


def _near(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), n=1)
    return f", did you mean {near[0]!r}?" if near else ""
