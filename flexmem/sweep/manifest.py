"""``manifest.json``: what a run folder holds, and whether a sweep may go on in it."""

from __future__ import annotations

import json
import platform
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from flexmem.sweep.config import ConfigError, JudgeEntry
from flexmem.sweep.durable import write_json
from flexmem.sweep.fingerprint import digest
from flexmem.sweep.judging import described_judges, judged_types
from flexmem.sweep.plan import LoadedBenchmark, Plan
from flexmem.sweep.tables import READABLE_VERSIONS, SCHEMA_VERSION

MANIFEST = "manifest.json"
_KEPT = ("fields", "planned", "arms", "data_digests", "metrics", "notes")  # what a later sweep adds to
_PACKAGES = ("flexmem", "ray", "numpy", "pyarrow", "torch", "sentence-transformers", "tiktoken", "openai")


class RunFolderError(ConfigError):
    """An output folder can't take this sweep: another configuration, another schema version, or no run at all."""


def plan_manifest(out: Path, plan: Plan) -> dict[str, Any]:
    """The manifest that a run of the plan in this folder gets, checked against an older one's: new arms, budgets and
    instances may join a run. Nothing is written.

    Raises:
        RunFolderError: the folder holds other files, results of another schema version, or results that were made from
            something else under the same name; the message names what differs. Nothing is changed then.
    """
    fields = plan.fields_by_name()
    planned = plan.cells()
    arms = {
        arm.name: {
            "rewrites_text": arm.rewrites_text,
            "asks_per_call": arm.asks_per_call,
            "family": arm.family,
            "control": arm.method is None,
        }
        for arm in plan.arms
    }
    digests = {loaded.name: loaded.benchmark.data_digest() for loaded in plan.benchmarks}
    metrics = {loaded.name: list(loaded.benchmark.metrics) for loaded in plan.benchmarks}
    notes = plan.notes()
    judges = described_judges(plan.config.models.judges)
    judged = judged_types(plan.benchmarks)
    path = out / MANIFEST
    run_id = uuid.uuid4().hex
    if path.exists():
        old = read_manifest(out)
        run_id = old["run_id"]
        _check(out, old["fields"], fields)
        fields = {
            **fields,
            "arms": {**old["fields"]["arms"], **fields["arms"]},
            "prompts": {**old["fields"].get("prompts", {}), **fields["prompts"]},
            "histories": {**old["fields"]["histories"], **fields["histories"]},
            "questions": {**old["fields"]["questions"], **fields["questions"]},
        }
        planned = _merge_cells(old["planned"], planned)
        arms = {**old["arms"], **arms}
        digests = {**old["data_digests"], **digests}
        metrics = {**old["metrics"], **metrics}
        judges = _merge_judges(out, old["judges"], judges)
        judged = {**old["judged"], **judged}
        notes = list(dict.fromkeys([*old["notes"], *notes]))
    elif out.exists() and not out.is_dir():
        raise RunFolderError(f"{out}: is not a folder; give an empty folder or a run's own")
    elif out.exists() and any(not entry.name.startswith(".") for entry in out.iterdir()):
        raise RunFolderError(f"{out}: is not empty and holds no {MANIFEST}; give an empty folder or a run's own")
    return {
        "schema_version": SCHEMA_VERSION,
        "run_id": run_id,
        "name": plan.config.name,
        "config": plan.config.model_dump(mode="json"),
        "fields": fields,
        "data_digests": digests,
        "metrics": metrics,
        "judges": judges,
        "judged": judged,
        "notes": notes,
        "planned": planned,
        "arms": arms,
        "versions": {"python": platform.python_version(), **_versions()},
        "git_commit": _git_commit(),
    }


def add_judges(out: Path, benchmarks: Sequence[LoadedBenchmark], judges: Sequence[JudgeEntry]) -> None:
    """Take judges into a run's manifest, after those that are there, and the question types that they judge.

    Raises:
        RunFolderError: not a run folder, another one's data, or a label that another judge has there.
    """
    manifest = read_manifest(out)
    if not any(loaded.name in manifest["data_digests"] for loaded in benchmarks):
        raise RunFolderError(
            f"{out}: has replies to {', '.join(manifest['data_digests'])}, and the configuration names only "
            f"{', '.join(loaded.name for loaded in benchmarks)}; give the run's own benchmarks"
        )
    for loaded in benchmarks:
        known = manifest["data_digests"].get(loaded.name)
        if known is not None and known != loaded.benchmark.data_digest():
            raise RunFolderError(f"{out}: its replies are to other data of {loaded.name} than the configuration names")
    write_manifest(
        out,
        {
            **manifest,
            "schema_version": SCHEMA_VERSION,
            "judges": _merge_judges(out, manifest["judges"], described_judges(judges)),
            "judged": {**manifest["judged"], **judged_types(benchmarks)},
        },
    )


def write_manifest(out: Path, manifest: Mapping[str, Any]) -> None:
    """Put a manifest into its folder, which is made if need be."""
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / MANIFEST, manifest)


def read_manifest(out: Path) -> dict[str, Any]:
    """A run folder's manifest.

    Raises:
        RunFolderError: there is none, it is damaged, or it is of another schema version.
    """
    path = out / MANIFEST
    if not path.is_file():
        raise RunFolderError(f"{out}: is not a run folder: it has no {MANIFEST}")
    try:
        manifest = json.loads(path.read_text("utf-8"))
        found = manifest["schema_version"]
    except (ValueError, KeyError, TypeError) as error:
        raise RunFolderError(f"{path}: is damaged: {error}") from error
    if found not in READABLE_VERSIONS:
        readable = ", ".join(map(str, READABLE_VERSIONS))
        raise RunFolderError(
            f"{out}: holds results of schema version {found}, this flexmem reads {readable}; "
            "take another output folder, or the flexmem that made it"
        )
    missing = [key for key in _KEPT if key not in manifest]
    if missing:
        raise RunFolderError(f"{path}: is damaged: it lacks {', '.join(missing)}")
    # Version 1 had no id, and neither 1 nor 2 had judges.
    return {"run_id": digest(manifest["fields"]), "judges": {}, "judged": {}, **manifest}


def _check(out: Path, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    differences = [name for name in ("code", "embedder", "reader", "memory") if old[name] != new[name]]
    details = [f"{name}: {_difference(old[name], new[name])}" for name in differences]
    for kind in ("arms", "histories"):
        details += [
            f"{kind} {name}: {_difference(old[kind][name], new[kind][name])}"
            for name in sorted(old[kind].keys() & new[kind].keys())
            if old[kind][name] != new[kind][name]
        ]
    prompts = old.get("prompts", {})  # not recorded once
    details += [
        f"arm {name!r}: what it asks the memory model with is worded in another way"
        for name in sorted(old["arms"].keys() & new["arms"].keys())
        if prompts.get(name) != new["prompts"][name]
    ]
    there = {digest(arm): name for name, arm in old["arms"].items()}
    for name, arm in new["arms"].items():
        if name not in old["arms"] and digest(arm) in there:  # a label is no part of a key
            details.append(f"arm {name!r} is there as {there[digest(arm)]!r}: keep that name")
    for name in sorted(old["questions"].keys() & new["questions"].keys()):
        # Fewer questions would make cells look unplanned that are finished; more only leave some to run.
        left_out = len(set(old["questions"][name]) - set(new["questions"][name]))
        if left_out:
            details.append(
                f"{name}: {left_out} questions of the run are not in this sweep; a run's questions may only grow"
            )
    if details:
        listed = "\n".join(f"  {detail}" for detail in details)
        raise RunFolderError(
            f"{out}: holds results of another configuration; take another folder, or another label for a changed arm\n"
            f"{listed}"
        )


def _merge_judges(out: Path, old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The judges of both, in their order. Two under one label would have their words mixed in one score."""
    for label in old.keys() & new.keys():
        if old[label] != new[label]:
            raise RunFolderError(
                f"{out}: judge {label!r} is there as another one ({_difference(old[label], new[label])}); give the new "
                "one a label of its own"
            )
    return {**old, **new}


def _difference(old: Any, new: Any, path: str = "") -> str:
    """The first place where two values differ, with both."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted(old.keys() | new.keys()):
            if old.get(key) != new.get(key):
                return _difference(old.get(key), new.get(key), f"{path}.{key}" if path else key)
    return f"{path or 'value'} was {old!r}, now {new!r}"


def _merge_cells(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Cells of both; one that both have counts the new plan's questions, and the more repeats of the two."""

    def key(cell: Mapping[str, Any]) -> tuple[Any, ...]:
        return cell["benchmark"], cell["arm"], cell["budget"], cell["reader"]

    merged = {key(cell): cell for cell in old}
    for cell in new:
        repeats = max(cell["repeats"], merged.get(key(cell), cell)["repeats"])
        merged[key(cell)] = {**cell, "repeats": repeats, "n": cell["n"] // cell["repeats"] * repeats}
    return list(merged.values())


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _git_commit() -> str | None:
    """The commit of the source tree that runs, if it is one; ``-dirty`` where it has changes."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    try:
        commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=True)
        changed = subprocess.run(["git", "status", "--porcelain"], cwd=root, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return commit.stdout.strip() + ("-dirty" if changed.stdout.strip() else "")
