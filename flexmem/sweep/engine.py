"""Running a sweep: what is missing of a plan, in an output folder."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from platformdirs import user_cache_dir

from flexmem.llm.accounts import budget_for, local_budgets
from flexmem.llm.config import make_model
from flexmem.sweep.cluster import ray_cluster
from flexmem.sweep.driver import Driver
from flexmem.sweep.finished import FinishedKeys
from flexmem.sweep.group_queue import GroupQueue
from flexmem.sweep.heartbeat import Heartbeat
from flexmem.sweep.judging import judge_run, judged_types
from flexmem.sweep.ledger import REPLIES
from flexmem.sweep.manifest import plan_manifest, write_manifest
from flexmem.sweep.plan import Plan
from flexmem.sweep.preflight import check_endpoints, check_environments, check_prices, check_replies, configured_models
from flexmem.sweep.progress import OnProgress, Progress, SweepOutcome, tell_judging
from flexmem.sweep.recovery import recover
from flexmem.sweep.results import lock_for_writing

__all__ = ["OnProgress", "Progress", "SweepOutcome", "run_sweep", "vector_cache_path"]


def vector_cache_path() -> Path:
    """Where vectors are kept across runs: in $FLEXMEM_CACHE, else the user's cache folder."""
    return Path(os.environ.get("FLEXMEM_CACHE") or user_cache_dir("flexmem")) / "vectors.sqlite"


def run_sweep(
    plan: Plan, out: Path, on_progress: OnProgress | None = None, *, replay: Path | None = None
) -> SweepOutcome:
    """Run what is missing of a plan in an output folder; the same call again goes on where this one stopped.

    With ``replay``, a finished run's folder, all replies of models are taken from there and nothing is sent.

    Raises:
        RunFolderError: the folder holds results of something else.
        ModelError: a configured endpoint can't be used.
        ConfigError: there is a cap, and the price of a model is not known.
        FlexmemError: an agent's environments can't be had on this machine.
        ReplyStoreError: the folder's replies can't be read or written, or there are none to replay.
        FolderBusyError: another run writes into the folder.
    """
    manifest = plan_manifest(out, plan)
    finished, torn = _finished_so_far(out)
    _, planned = plan.size()
    groups, missing = plan.size(finished)
    progress = Progress(planned, planned - missing, before=planned - missing)
    if on_progress is not None:
        on_progress(progress)
    replies = replay / REPLIES if replay is not None else None
    models = configured_models(plan.config)
    check_replies(out / REPLIES, replies)
    if replay is None:
        check_prices(models, plan.config.engine.max_usd)
        check_endpoints(models if missing else ())
    if missing:
        check_environments([loaded.benchmark for loaded in plan.benchmarks], plan.config.engine.environment)
    write_manifest(out, manifest)  # not before: a folder made from a wrong address would refuse the right one
    outcome = SweepOutcome(planned, planned, {})
    if missing:
        queue = GroupQueue(plan.groups(finished), groups)
        with ExitStack() as starting:
            starting.enter_context(Heartbeat(out).repeated({"starting": True, "in_flight": {}}))
            with ray_cluster(plan.config.engine) as ray:
                starting.close()  # the driver has its own
                driver = Driver(ray, plan, out, queue, progress, len(finished), on_progress or _say_nothing)
                outcome = driver.run(vector_cache_path(), replies)
    return _judged(plan, out, replace(outcome, torn=torn), replies, on_progress or _say_nothing)


def _judged(
    plan: Plan, out: Path, outcome: SweepOutcome, replies: Path | None, on_progress: OnProgress
) -> SweepOutcome:
    """Have the replies judged, where the sweep has judges and what is to be judged."""
    judges, engine = plan.config.models.judges, plan.config.engine
    if not judges or outcome.stopped or not judged_types(plan.benchmarks):
        return outcome
    budgets = local_budgets(entry.model for entry in judges)
    judging = judge_run(
        plan.benchmarks,
        judges,
        out,
        lambda entry: make_model(entry.model, budget_for(entry.model, budgets)),
        in_flight=engine.in_flight,
        max_usd=engine.max_usd,
        replay=replies,
        on_judged=tell_judging(on_progress),
    )
    return replace(outcome, judging=judging, stopped=judging.stopped)


def _finished_so_far(out: Path) -> tuple[FinishedKeys, tuple[str, ...]]:
    """Keys of the episodes that have a row, and torn parts that were set aside; looked at while nobody writes."""
    if not out.exists():
        return FinishedKeys(), ()
    with lock_for_writing(out):
        torn = tuple(map(str, recover(out)))
        return FinishedKeys.read(out), torn


def _say_nothing(progress: Progress) -> None:
    """For callers that look at the outcome alone."""
