"""Histories, questions and budgets to check methods with, and services without a network."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from flexmem.history import Session, Step, Turn, Unit, pack_steps, split_sessions
from flexmem.llm.scripted import ScriptedModel
from flexmem.memory.protocol import Budget, Query, TaskKind
from flexmem.ports import IndexConfig, IndexFactory, Services, VectorArray
from flexmem.retrieval.index import LocalIndex

LEAST_ROOM = 64
"""The smallest room, in tokens, that every method must work in."""


class WordEmbedder:
    """A small real embedder: a text's vector counts its words, each on the axis that its hash names."""

    name = "words"
    dimension = 32

    async def embed(self, texts: Sequence[str]) -> VectorArray:
        """Shape (len(texts), 32), float32, unit length; a text without a word has the vector of the empty one."""
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[0] = 0.5
            for word in text.lower().split():
                row[1 + _hash(word) % (self.dimension - 1)] += 1
            row /= np.linalg.norm(row)
        return rows


def _hash(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=4).digest(), "big")


def services(
    model: ScriptedModel | None = None,
    open_index: IndexFactory | None = None,
    seed: int = 0,
    room: int | None = None,
) -> Services:
    """Services without a network: `WordEmbedder`, private indexes."""
    embedder = WordEmbedder()

    def local(config: IndexConfig) -> LocalIndex:
        return LocalIndex(config, embedder if config.dense else None)

    return Services(embedder, open_index or local, model, seed, room)


# ---------------------------------------------------------------- cases


@dataclass(frozen=True)
class Case:
    """A history and what is asked of it. An agent's ``questions`` are the texts of newest units, asked about ``task``.

    ``cut`` says after how many units a check saves, restores or reads in mid-history.
    """

    kind: TaskKind
    units: tuple[Unit, ...]
    questions: tuple[str, ...]
    budgets: tuple[Budget, ...]
    task: str | None
    cut: int

    async def queries(self) -> list[Query]:
        """The queries as the harness makes them (docs/methods.md 0.3)."""
        embedder = WordEmbedder()
        made = []
        for question in self.questions:
            own = (await embedder.embed([question]))[0]
            if self.task is None:
                made.append(Query.question(question, own))
                continue
            both = own + (await embedder.embed([self.task]))[0]
            made.append(Query(question, both / np.linalg.norm(both), question, own, self.task))
        return made


_WORDS = ("kettle", "stove", "Ann", "Bo", "lid", "red", "7", "2,000", "May", "walked", "to", "the", "garden", "and")
_ODD = [
    *(
        "",
        "\n",
        "\r\n",
        "\n\n\n",
        " ",
        "\t",
        "/",
        "/etc/hosts",
        "!\n/x",
        "\n/tmp/a.txt\n",
        "[...]",
        "### u03 — x",
        "# T",
    ),
    *("🙂", "日本語。", "é", "\ud800", "\ud83d\ude00", "\0", "<|endoftext|>", "<b>bold</b>", "`x`", "a_b", "...", "?!"),
    *("x = api.login(name='Ann')", "Error: no such file", "# a comment", "{'a': 1}"),
]
_sentences = st.lists(st.sampled_from(_WORDS), min_size=1, max_size=9).map(lambda words: " ".join(words) + ".")
_short = st.lists(_sentences | st.sampled_from(_ODD) | st.text(max_size=3), max_size=4).map(
    lambda parts: "".join(part if part.startswith("/") else " " + part for part in parts)
)
_lines = st.lists(_sentences | st.sampled_from(_ODD), min_size=1, max_size=30).map("\n".join)
_huge = st.tuples(
    st.sampled_from(["kettle ", "Ann sang. ", "x", "the lid\n", "/", "🙂", " ", "\n", "7,"]), st.integers(300, 900)
)
_texts = st.one_of(_short, _short, _short, _lines, _huge.map(lambda drawn: drawn[0] * drawn[1]))


@st.composite
def conversations(draw: st.DrawFn) -> list[Unit]:
    """Units of a few sessions; some named speakers, some roles alone, some sessions empty or without a date."""
    sessions = []
    for number in range(draw(st.integers(0, 3))):
        turns = tuple(
            Turn(
                f"D{number}:{position}",
                draw(st.sampled_from(("user", "assistant", "user", "system"))),
                draw(_texts),
                draw(st.sampled_from((None, "Ann", "Bo Li", "/bot"))),
            )
            for position in range(draw(st.integers(0, 7)))
        )
        date = draw(st.sampled_from((None, "8 May 2023", "2023/05/20 (Sat) 02:21")))
        sessions.append(Session(str(number + 1), turns, date))
    return split_sessions(sessions, history="h", limit=draw(st.sampled_from((20, 50, 120))))


@st.composite
def trajectories(draw: st.DrawFn) -> list[Unit]:
    """Units of an agent's steps."""
    steps = [
        Step(number, draw(_texts), draw(_texts), draw(st.sampled_from(("", "I look.")) | _short))
        for number in range(1, draw(st.integers(0, 9)) + 1)
    ]
    return pack_steps(steps, history="h", limit=draw(st.sampled_from((20, 60, 150))))


@st.composite
def cases(draw: st.DrawFn, kind: TaskKind) -> Case:
    """A history with up to three questions and budgets; an agent's window takes up to three quarters of its budget."""
    units = draw(conversations() if kind == "reader" else trajectories())
    rooms = st.integers(LEAST_ROOM, 300) | st.sampled_from((LEAST_ROOM, 500, 1_000, 4_000))
    budgets = []
    for _ in range(draw(st.integers(1, 2))):
        room = draw(rooms)
        window = draw(st.integers(0, 3 * room)) if kind == "agent" else 0
        budgets.append(Budget(room + window, window))
    return Case(
        kind=kind,
        units=tuple(units),
        questions=tuple(draw(st.lists(_short, min_size=1, max_size=2))),
        budgets=tuple(budgets),
        task=draw(_short) if kind == "agent" else None,
        cut=draw(st.integers(0, len(units))),
    )
