"""Seeded synthetic histories of any size: conversations with planted facts and questions, and agents' trajectories."""

from flexmem.benchmarks.synthetic.benchmark import SyntheticBenchmark
from flexmem.benchmarks.synthetic.config import QUESTION_TYPES, QuestionShares, QuestionType, SyntheticConfig
from flexmem.benchmarks.synthetic.generator import iter_sessions, questions
from flexmem.benchmarks.synthetic.steps import iter_steps

__all__ = [
    "QUESTION_TYPES",
    "QuestionShares",
    "QuestionType",
    "SyntheticBenchmark",
    "SyntheticConfig",
    "iter_sessions",
    "iter_steps",
    "questions",
]
