"""The tables that a run writes, as Parquet schemas (docs/tables.md). Null means unknown or not applicable, never
zero."""

from __future__ import annotations

import pyarrow as pa

SCHEMA_VERSION = 5
READABLE_VERSIONS = (1, 2, 3, 4, 5)
"""A run of an older one is taken over: 1 had fresh parts only; 2 lacked the tables ``calls`` and ``judgements``; 4
lacked ``steps``; what they lacked of the columns in `ADDED` is null in what they wrote.
"""
ADDED: dict[str, tuple[str, ...]] = {
    "episodes": (
        "reader_cached_tokens",
        "reader_reasoning_tokens",
        "memory_calls",
        "memory_input_tokens",
        "memory_output_tokens",
        "memory_usd",
        "steps",
        "ended",
        "environment_s",
        "measures",
        "flags",
    ),
    "builds": ("memory_cached_tokens", "memory_reasoning_tokens", "usd", "phase"),
}

PARTITIONS: dict[str, tuple[str, ...]] = {"episodes": ("benchmark", "arm", "budget")}
"""Columns by which a table's merged files are partitioned; other tables have none."""

_SCORE = pa.struct([("metric", pa.string()), ("value", pa.float64())])
_COUNT = pa.struct([("name", pa.string()), ("tokens", pa.int64())])
_FALLBACK = pa.struct([("reason", pa.string()), ("times", pa.int64())])
_BLOCK = pa.struct(
    [
        ("resolution", pa.string()),
        ("uids", pa.list_(pa.int32())),
        ("pieces", pa.list_(pa.int32())),
        ("tokens", pa.int32()),
        ("text", pa.string()),  # digest in `pieces` of a block whose text is not made of pieces
    ]
)

EPISODES = pa.schema(
    [
        ("episode", pa.string()),  # fingerprint: the key of resume
        ("benchmark", pa.string()),
        ("instance", pa.string()),  # the cluster of paired tests
        ("question", pa.string()),
        ("question_type", pa.string()),
        ("arm", pa.string()),
        ("budget", pa.int32()),  # null for arms without one
        ("reader", pa.string()),
        ("memory_model", pa.string()),
        ("repeat", pa.int32()),
        ("outcome", pa.string()),  # ok | failed
        ("error_class", pa.string()),  # method | limit | agent
        ("error", pa.string()),
        ("metric", pa.string()),  # headline metric of `score`, null without a reader
        ("score", pa.float64()),
        ("scores", pa.list_(_SCORE)),
        ("reply", pa.string()),
        ("scored_by_evidence", pa.bool_()),  # in the population of the verbatim-evidence score
        ("n_evidence", pa.int32()),
        ("evidence_visible", pa.int32()),
        ("evidence_partly", pa.int32()),
        ("verbatim_evidence", pa.float64()),  # null where the score does not apply to question or method
        ("evidence_rank", pa.int32()),
        ("extractive", pa.bool_()),  # in the population of answer recall
        ("answer_recall", pa.float64()),
        ("room", pa.int32()),
        ("memory_tokens", pa.int32()),
        ("utilisation", pa.float64()),
        ("violation_tokens", pa.int32()),  # tokens over the room, as the harness counts
        ("reader_input_tokens", pa.int64()),
        ("reader_output_tokens", pa.int64()),
        ("reader_cached_tokens", pa.int64()),
        ("reader_reasoning_tokens", pa.int64()),
        ("usd", pa.float64()),  # of the reader's call, whoever paid for it first
        ("memory_calls", pa.int64()),  # of the memory model while this episode's memory was rendered
        ("memory_input_tokens", pa.int64()),
        ("memory_output_tokens", pa.int64()),
        ("memory_usd", pa.float64()),
        ("render_ms", pa.float64()),
        ("read_s", pa.float64()),
        ("steps", pa.int32()),  # of an agent; all that follow too
        ("ended", pa.string()),  # completed | steps | seconds | usd | sandbox: the task closed, or a limit
        ("environment_s", pa.float64()),  # its actions, start and grading
        ("measures", pa.list_(_SCORE)),  # what the benchmark measures beside scores
        ("flags", pa.list_(pa.string())),  # what a reader of the result must know
        ("build", pa.string()),
        ("attempts", pa.int32()),
        ("finished_at", pa.timestamp("ms", tz="UTC")),
    ]
)

RENDERINGS = pa.schema(
    [
        ("episode", pa.string()),
        ("call", pa.int32()),
        ("build", pa.string()),
        ("cut", pa.string()),  # which pieces: instance and piece size
        ("digest", pa.string()),  # of the text shown
        ("tokens", pa.int32()),
        ("tokens_by_resolution", pa.list_(_COUNT)),
        ("blocks", pa.list_(_BLOCK)),
        ("ranking", pa.list_(pa.int32())),
        ("hidden", pa.int32()),
    ]
)

STEPS = pa.schema(
    [
        ("episode", pa.string()),
        ("step", pa.int32()),  # from 1; the rendering before it is call step - 1 of ``renderings``. 0: the task
        ("kind", pa.string()),  # task | action | tool (of the memory) | none (nothing that could be done)
        ("thought", pa.string()),
        ("action", pa.string()),
        ("output", pa.string()),  # as agent and memory saw it
        ("output_characters", pa.int64()),  # before it was cut
        ("window_tokens", pa.int32()),
        ("memory_tokens", pa.int32()),  # null where no memory was shown
        ("agent_input_tokens", pa.int64()),
        ("agent_output_tokens", pa.int64()),
        ("usd", pa.float64()),
        ("context_s", pa.float64()),  # memory written and rendered
        ("decide_s", pa.float64()),
        ("act_s", pa.float64()),
    ]
)

BUILDS = pa.schema(
    [
        ("build", pa.string()),
        ("benchmark", pa.string()),
        ("instance", pa.string()),
        ("arm", pa.string()),
        ("memory_model", pa.string()),
        ("repeat", pa.int32()),
        ("units", pa.int32()),
        ("history_tokens", pa.int64()),
        ("memory_calls", pa.int64()),
        ("memory_input_tokens", pa.int64()),
        ("memory_output_tokens", pa.int64()),
        ("memory_cached_tokens", pa.int64()),
        ("memory_reasoning_tokens", pa.int64()),
        ("usd", pa.float64()),
        ("phase", pa.string()),  # written | restored | read: what this row's calls were made for
        ("fallbacks", pa.list_(_FALLBACK)),
        ("restored", pa.bool_()),  # read from an earlier run's, not written
        ("seconds", pa.float64()),
        ("finished_at", pa.timestamp("ms", tz="UTC")),
    ]
)

PIECES = pa.schema(
    [
        ("digest", pa.string()),
        ("cut", pa.string()),
        ("kind", pa.string()),  # piece | header | line
        ("number", pa.int32()),  # piece index, or the header's unit
        ("tokens", pa.int32()),
        ("text", pa.string()),
    ]
)

FAILURES = pa.schema(
    [
        ("episode", pa.string()),
        ("benchmark", pa.string()),
        ("instance", pa.string()),
        ("question", pa.string()),
        ("arm", pa.string()),
        ("budget", pa.int32()),
        ("repeat", pa.int32()),
        ("error_class", pa.string()),  # infrastructure | configuration: not an outcome, the episode is still to be run
        ("error", pa.string()),
        ("failed_at", pa.timestamp("ms", tz="UTC")),
    ]
)

CALLS = pa.schema(
    [
        ("call", pa.string()),
        ("attempt", pa.int32()),  # null: nothing was sent, or nobody knows
        ("key", pa.string()),  # of the reply: equal calls have equal keys
        ("subject_kind", pa.string()),  # episode | build | judgement
        ("subject", pa.string()),  # its key: what the call was first made for
        ("role", pa.string()),
        ("model", pa.string()),
        ("repeat", pa.int32()),
        ("started_at", pa.timestamp("ms", tz="UTC")),
        ("latency_s", pa.float64()),
        ("outcome", pa.string()),  # reply | an error's name | unknown
        ("status", pa.int32()),
        ("input_tokens", pa.int64()),
        ("cached_tokens", pa.int64()),
        ("cache_written_tokens", pa.int64()),
        ("output_tokens", pa.int64()),
        ("reasoning_tokens", pa.int64()),
        ("usd", pa.float64()),
        ("most_usd", pa.float64()),
        ("dropped", pa.list_(pa.string())),
    ]
)

JUDGEMENTS = pa.schema(
    [
        ("judgement", pa.string()),  # key: episode's reply, judge and rubric
        ("episode", pa.string()),
        ("judge", pa.string()),  # label in the configuration
        ("judge_model", pa.string()),
        ("rubric", pa.string()),
        ("prompt", pa.string()),  # digest
        ("label", pa.float64()),  # in [0, 1]; null: no verdict could be read
        ("reply", pa.string()),
        ("error_class", pa.string()),
        ("error", pa.string()),
        ("input_tokens", pa.int64()),
        ("output_tokens", pa.int64()),
        ("usd", pa.float64()),
        ("finished_at", pa.timestamp("ms", tz="UTC")),
    ]
)

TABLES: dict[str, pa.Schema] = {
    "episodes": EPISODES,
    "renderings": RENDERINGS,
    "steps": STEPS,
    "builds": BUILDS,
    "pieces": PIECES,
    "failures": FAILURES,
    "calls": CALLS,
    "judgements": JUDGEMENTS,
}
