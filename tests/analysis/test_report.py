"""Reports: the published rows, and what people read."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from flexmem.analysis.formats import escape_latex
from flexmem.analysis.frames import load
from flexmem.analysis.manifest import RunError
from flexmem.analysis.report import print_report, report_rows, to_csv, to_latex, to_markdown
from flexmem.analysis.wording import budget_label, percent
from flexmem.cli import app

from .runs import Row, RunFolder, episode

KEYS = [  # the contract, written out once more
    "benchmark",
    "question_type",
    "arm",
    "budget",
    "reader",
    "repeats",
    "n",
    "metric",
    "score",
    "score_low",
    "score_high",
    "n_evidence",
    "evidence_all",
    "evidence_turns",
    "answer_recall",
    "utilisation",
    "tokens",
    "usd",
    "render_ms",
]
BUDGETS = (1000, 2000, 4000, 8000)


def cell_rows(arm: str, budget: int | None, *, shown: int, **columns: Any) -> list[Row]:
    """Ten questions in each of two conversations; the first ``shown`` of each show their evidence. An eleventh has no
    evidence.
    """
    rows = []
    for instance in ("i1", "i2"):
        for number in range(10):
            visible = int(number < shown)
            facts: Row = {"evidence_visible": visible, "verbatim_evidence": float(visible), "answer_recall": 0.5}
            facts |= {"utilisation": 0.9 if budget else None, "memory_tokens": budget, "render_ms": 1.25}
            rows.append(episode(arm, f"q{number}", instance=instance, budget=budget, **(facts | columns)))
        nothing: Row = {"scored_by_evidence": False, "verbatim_evidence": None, "n_evidence": 0, "evidence_visible": 0}
        nothing |= {"extractive": False, "answer_recall": None, "question_type": "other"}
        rows.append(episode(arm, "q10", instance=instance, budget=budget, **(columns | nothing)))
    return rows


@pytest.fixture
def full(folder: RunFolder) -> RunFolder:
    """Four budgets of two methods, one of which rewrites text, and an arm without a budget."""
    arms = ("fused_pieces.no_cues", "amem")
    cells = [{"arm": "no_memory", "budget": None, "n": 22}]
    cells += [{"arm": arm, "budget": budget, "n": 22} for arm in arms for budget in BUDGETS]
    folder.plan(cells, rewriting=["amem"], notes=["Ten questions are [made up].", "All & sundry: 5 %."])
    folder.write("episodes", cell_rows("no_memory", None, shown=0, render_ms=None))
    for step, budget in enumerate(BUDGETS):
        folder.write("episodes", cell_rows("fused_pieces.no_cues", budget, shown=4 + 2 * step))
        folder.write("episodes", cell_rows("amem", budget, shown=0, verbatim_evidence=None, answer_recall=0.75))
    return folder


def printed(folder: RunFolder, width: int = 100, *, by_type: bool = False) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    print_report(load(folder.path), console, by_type=by_type)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def line_of(text: str, arm: str, matrix: str) -> str:
    return next(line for line in text[text.index(matrix) :].splitlines() if line.startswith(arm))


class TestRows:
    def test_contract(self, full: RunFolder) -> None:
        rows = report_rows(load(full.path))
        assert all(list(row) == KEYS for row in rows)
        assert json.loads(json.dumps(rows, allow_nan=False)) == rows
        assert [(row["arm"], row["budget"], row["question_type"]) for row in rows[:6]] == [
            ("no_memory", None, None),
            ("no_memory", None, "other"),
            ("no_memory", None, "single"),
            ("fused_pieces.no_cues", 1000, None),
            ("fused_pieces.no_cues", 1000, "other"),
            ("fused_pieces.no_cues", 1000, "single"),
        ]
        assert len(rows) == 9 * 3

    def test_values(self, full: RunFolder) -> None:
        row = report_rows(load(full.path))[6]  # 6 of 10 questions show their evidence in either conversation
        wanted = {
            "benchmark": "bench",
            "question_type": None,
            "arm": "fused_pieces.no_cues",
            "budget": 2000,
            "reader": None,
            "repeats": 1,
            "n": 22,
            "metric": "verbatim_evidence",
            "score": 0.6,
            "score_low": 0.6,
            "score_high": 0.6,
            "n_evidence": 20,
            "evidence_all": 0.6,
            "evidence_turns": 0.6,
            "answer_recall": 0.5,
            "utilisation": pytest.approx(0.9),
            "tokens": 2000.0,
            "usd": None,
            "render_ms": 1.25,
        }
        assert row == wanted

    def test_null_for_rewriting_arms_and_incomplete_cells(self, full: RunFolder) -> None:
        amem = next(row for row in report_rows(load(full.path)) if row["arm"] == "amem")
        assert [amem[key] for key in ("score", "score_low", "evidence_all", "evidence_turns")] == [None] * 4
        assert (amem["n_evidence"], amem["answer_recall"]) == (20, 0.75)
        next((full.path / "episodes").glob("*0002.parquet")).unlink()
        gone = next(row for row in report_rows(load(full.path)) if row["budget"] == 1000)
        assert (gone["n"], gone["n_evidence"]) == (0, 0)
        assert all(gone[key] is None for key in KEYS[8:11] + KEYS[12:])

    def test_csv(self, full: RunFolder) -> None:
        rows = list(csv.DictReader(io.StringIO(to_csv(load(full.path)))))
        assert list(rows[0]) == KEYS
        assert len(rows) == 27
        assert (rows[6]["arm"], rows[6]["score"], rows[6]["reader"]) == ("fused_pieces.no_cues", "0.6", "")


class TestByType:
    def test_a_section_a_type_with_its_own_population_and_no_costs(self, full: RunFolder) -> None:
        text = printed(full, by_type=True)
        assert [line for line in text.splitlines() if "of type" in line] == [
            "bench: questions of type other",
            "bench: questions of type single",
        ]
        single = text[text.index("of type single") :]
        line = line_of(single, "fused_pieces.no_cues", "Verbatim-evidence score")
        assert line.split("  ")[-1].strip() == "100 [100, 100]"
        assert "20 questions in 2 conversations\n" in single, "none of the other type is counted"
        assert "Time per rendering" not in text
        assert "Ten questions are [made up]." in text

    def test_questions_of_a_type_differ_from_the_whole(self, folder: RunFolder) -> None:
        folder.plan([{"arm": "a", "n": 2}])
        seen = episode("a", "q1", question_type="one")
        unseen = episode("a", "q2", question_type="two", evidence_visible=0, verbatim_evidence=0.0)
        folder.write("episodes", [seen, unseen])
        text = to_markdown(load(folder.path), by_type=True)
        one, two = text.split("## bench: questions of type ")[1:]
        assert "| a | 100 |" in one
        assert "| a | 0.0 |" in two
        assert "of type two" in to_latex(load(folder.path), by_type=True)

    def test_the_command_in_each_form(self, full: RunFolder) -> None:
        for form, mark in (
            ("terminal", "bench: questions of type"),
            ("md", "## bench: questions of type"),
            ("csv", ""),
        ):
            command = ["report", str(full.path), "--by", "type", "--format", form]
            result = CliRunner().invoke(app, command)
            assert result.exit_code == 0, result.output
            assert mark in result.stdout
        assert result.stdout == to_csv(load(full.path)), "which has the types in any case"
        assert CliRunner().invoke(app, ["report", str(full.path), "--by", "arm"]).exit_code == 2

    def test_a_run_without_types_says_what_to_do(self, folder: RunFolder) -> None:
        folder.plan([{"arm": "a", "n": 1}])
        folder.write("episodes", [episode("a", "q1", question_type=None)])
        with pytest.raises(RunError, match="no finished question has a type; leave `--by type` out"):
            printed(folder, by_type=True)


def test_costs_stand_in_the_plan_s_order_whatever_the_files_order(folder: RunFolder) -> None:
    folder.plan([{"arm": arm, "n": 1, "reader": "r"} for arm in ("one", "two", "three")])
    for arm in ("three", "one", "two"):
        read: Row = {"reader": "r", "metric": "f1", "score": 1.0, "reader_input_tokens": 9, "reader_output_tokens": 1}
        folder.write("episodes", [episode(arm, "q1", **read)])
    table = to_markdown(load(folder.path)).split("**Reader tokens, in and out**")[1].split("\n\n")[1]
    assert [line.split(" | ")[0] for line in table.splitlines()[2:]] == ["| one", "| two", "| three"]


class TestConsole:
    def test_four_budgets_fit_100_columns(self, full: RunFolder) -> None:
        text = printed(full)
        assert max(map(len, text.splitlines())) <= 100
        line = line_of(text, "fused_pieces.no_cues", "Verbatim-evidence score")
        shares = "40.0 [40.0, 40.0]  60.0 [60.0, 60.0]  80.0 [80.0, 80.0]     100 [100, 100]"
        assert line == f"fused_pieces.no_cues  {shares}"
        heads = text[text.index("Verbatim-evidence score") :].splitlines()
        assert heads[1] == "20 questions in 2 conversations; 2 left out (no valid evidence, adversarial or abstention)"
        assert heads[2].split() == ["1k", "2k", "4k", "8k"]
        assert len(heads[2]) == len(line)

    def test_an_arm_without_a_budget_stands_once_in_the_middle(self, full: RunFolder) -> None:
        text = printed(full)
        line = line_of(text, "no_memory", "Verbatim-evidence score")
        assert line.count("0.0 [0.0, 0.0]") == 1
        assert 50 < line.index("0.0 [") < 60

    def test_rewriting_arms(self, full: RunFolder) -> None:
        text = printed(full)
        assert line_of(text, "amem", "Verbatim-evidence score").split()[1:] == ["n/a"] * 4
        assert line_of(text, "amem", "Evidence turns").split()[1:] == ["n/a"] * 4
        assert "75.0 [75.0, 75.0]" in line_of(text, "amem", "Answer recall")
        assert "n/a: the arm shows rewritten text" in text

    def test_the_other_matrices(self, full: RunFolder) -> None:
        text = printed(full)
        assert "20 evidence turns of 20 questions" in text
        assert "20 questions whose answer's words are all in the history; 2 more left out" in text
        assert line_of(text, "amem", "Utilisation").split()[1:] == ["90.0"] * 4
        assert line_of(text, "amem", "Time per rendering").split()[1:] == ["1.25"] * 4
        assert line_of(text, "no_memory", "Time per rendering").split()[1:] == ["–"]
        assert "USD" not in text

    def test_budgets_that_do_not_fit_continue_below(self, full: RunFolder) -> None:
        text = printed(full, width=70)
        matrix = text[text.index("Verbatim-evidence score") : text.index("Evidence turns")]
        heads = [line.split() for line in matrix.splitlines() if line.strip().endswith("k")]
        assert heads == [["1k", "2k"], ["4k", "8k"]]
        assert max(map(len, matrix.splitlines()[3:])) <= 70
        assert "80.0 [80.0, 80.0]" in matrix

    def test_the_footer(self, full: RunFolder) -> None:
        text = " ".join(printed(full).split())
        assert "The verbatim-evidence score is neither an accuracy nor a bound of a reader's" in text
        assert "docs/methods.md E.6b" in text
        assert "Student t over conversations" in text
        assert "bootstrap" not in text
        assert "Ten questions are [made up]." in text  # not read as markup
        assert "Incomplete" not in text

    def test_what_is_incomplete(self, full: RunFolder) -> None:
        """The 1k cell of the first method is gone; the arm at other budgets tells that 20 questions count."""
        next((full.path / "episodes").glob("*0002.parquet")).unlink()
        failure = {"episode": "x", "benchmark": "bench", "arm": "fused_pieces.no_cues", "budget": 1000}
        full.write("failures", [failure | {"error_class": "infrastructure"}])
        text = printed(full)
        assert "  0.0 to 100 *  60.0 [" in line_of(text, "fused_pieces.no_cues", "Verbatim-evidence score")
        assert line_of(text, "fused_pieces.no_cues", "Answer recall").split()[1] == "*"
        text = " ".join(text.split())
        assert "* fused_pieces.no_cues at 1k: 0 of 22 episodes; failed: infrastructure 1." in text
        assert "if all that is missing got 0, and if it got 1" in text

    def test_failures_and_violations_and_rows_written_twice(self, folder: RunFolder) -> None:
        folder.plan([{"arm": "a", "budget": 2000, "n": 3}])
        broken: Row = {"outcome": "failed", "error_class": "method", "violation_tokens": 5, "budget": 2000}
        rows = [episode("a", "q1", budget=2000), episode("a", "q2", **broken), episode("a", "q3", **broken)]
        folder.write("episodes", [*rows, rows[0]])
        text = " ".join(printed(folder).split())
        assert "Failed and counted as 0: a at 2k: method 2." in text
        assert "Over budget: a at 2k: 2 renderings." in text
        assert "1 row written twice" in text
        assert "Where there is one conversation there is no interval." in text
        assert "33.3" in text
        assert "33.3 [" not in text

    def test_many_incomplete_cells_do_not_flood(self, folder: RunFolder) -> None:
        folder.plan([{"arm": f"arm{number}", "n": 1} for number in range(40)])
        text = printed(folder)
        assert "0 questions in 0 conversations, so far" in text
        assert text.count("0 of 1 episode.") == 12
        assert "28 more cells" in text

    def test_a_reader_comes_first_and_sections_are_apart(self, folder: RunFolder) -> None:
        folder.plan([{"arm": "a", "n": 1, "reader": "r", "repeats": 1}, {"arm": "a", "n": 2, "repeats": 2}])
        folder.write("episodes", [episode("a", "q1", reader="r", metric="f1", score=0.25, usd=0.0125)])
        folder.write("episodes", [episode("a", "q1", repeat=repeat) for repeat in (0, 1)])
        text = printed(folder)
        assert text.startswith("bench, read by r\n\nScore (f1), %")
        assert line_of(text, "a", "Score (f1)").split() == ["a", "25.0"]
        assert line_of(text, "a", "USD per episode").split() == ["a", "0.0125"]
        assert "bench, means of 2 repeats" in text

    def test_resampling_is_named(self, folder: RunFolder) -> None:
        folder.plan([{"arm": "a", "n": 30}])
        folder.write("episodes", [episode("a", "q", instance=f"i{number}") for number in range(30)])
        assert "10,000 bootstrap resamples of conversations" in " ".join(printed(folder).split())

    def test_an_empty_plan(self, folder: RunFolder) -> None:
        folder.plan([], notes=["Nothing is planned."])
        assert "Nothing is planned." in printed(folder)
        assert report_rows(load(folder.path)) == []


class TestFormats:
    def test_markdown(self, full: RunFolder) -> None:
        text = to_markdown(load(full.path))
        assert "| arm | 1k | 2k | 4k | 8k |\n| --- | ---: | ---: | ---: | ---: |\n" in text
        assert "| no\\_memory (no budget) | 0.0 \\[0.0, 0.0] |  |  |  |" in text
        assert "| amem | n/a | n/a | n/a | n/a |" in text
        assert "- Ten questions are \\[made up]." in text
        assert "docs/methods.md E.6b" in text

    def test_latex(self, full: RunFolder) -> None:
        text = to_latex(load(full.path))
        assert r"fused\_pieces.no\_cues & 40.0 {[}40.0, 40.0{]} & " in text
        assert r"no\_memory & \multicolumn{4}{c}{0.0 {[}0.0, 0.0{]}} \\" in text
        assert r"\begin{tabular}{lrrrr}" in text
        assert r"\item Ten questions are {[}made up{]}." in text
        assert r"\item All \& sundry: 5 \%." in text
        assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 5

    def test_hostile_names_stay_in_their_cells(self, folder: RunFolder) -> None:
        name = r"a|b_{x}\&*[y]"
        folder.plan([{"arm": name, "n": 1}])
        folder.write("episodes", [episode(name, "q")])
        run = load(folder.path)
        assert r"| a\|b\_{x}\\&\*\[y] | 100 |" in to_markdown(run)
        assert r"a\textbar{}b\_\{x\}\textbackslash{}\&{*}{[}y{]} & \multicolumn{1}{c}{100} \\" in to_latex(run)
        assert name in printed(folder)

    def test_every_special_character_of_latex_is_escaped_once(self) -> None:
        assert escape_latex("\\&%$#_{}~^<>|*[]") == (
            r"\textbackslash{}\&\%\$\#\_\{\}\textasciitilde{}\textasciicircum{}\textless{}\textgreater{}\textbar{}{*}{[}{]}"
        )
        assert escape_latex("plain – text") == "plain – text"


@pytest.mark.parametrize(
    ("budget", "label"), [(2000, "2k"), (2500, "2.5k"), (600, "600"), (2048, "2048"), (128_000, "128k")]
)
def test_budget_labels(budget: int, label: str) -> None:
    assert budget_label(budget) == label


@pytest.mark.parametrize(
    ("share", "text"), [(0, "0.0"), (0.57861, "57.9"), (1, "100"), (0.9999, "100"), (0.9994, "99.9")]
)
def test_percentages(share: float, text: str) -> None:
    assert percent(share) == text
