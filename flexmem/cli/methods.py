"""``flexmem methods``: what there is to run."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated

import typer
from rich.table import Table

from flexmem.agents.controls import CONTROLS
from flexmem.cli.output import console, expected_errors, print_json
from flexmem.memory.protocol import FidelityCard, MethodInfo
from flexmem.memory.registry import MethodSpec, find_method
from flexmem.memory.registry import methods as registered


def methods(
    name: Annotated[str | None, typer.Argument(help="One method: its options and its fidelity card.")] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False,
) -> None:
    """List the memory methods and control arms, or show one method whole."""
    if name is not None:
        with expected_errors():
            spec = find_method(name)
        _show(spec, as_json=as_json)
    elif as_json:
        print_json([_row(spec.info) for spec in registered().values()])
    else:
        table = Table("method", "family", "for", "what it shows")
        for spec in registered().values():
            table.add_row(spec.info.name, spec.info.family, ", ".join(spec.info.tasks), spec.info.summary)
        for control, summary in CONTROLS.items():
            table.add_row(control, "control arms", "sweeps", summary)
        console().print(table)


def _row(info: MethodInfo) -> dict[str, object]:
    return {
        "name": info.name,
        "family": info.family,
        "writes_with_model": info.writes_with_model,
        "reads_with_model": info.reads_with_model,
        "rewrites_text": info.rewrites_text,
        "build_per_budget": info.build_per_budget,
        "tools": info.tools,
        "tasks": list(info.tasks),
    }


def _show(spec: MethodSpec, *, as_json: bool) -> None:
    card = {field.name: getattr(spec.info.card, field.name) for field in fields(FidelityCard)}
    options = spec.config.model_dump(mode="json")
    if as_json:
        print_json(_row(spec.info) | {"summary": spec.info.summary, "options": options, "card": card})
        return
    out = console()
    out.print(f"[bold]{spec.info.name}[/bold]: {spec.info.summary}\n")
    table = Table("option", "default", "why", title="options", title_justify="left")
    reasons = _reasons(spec)
    for option, value in options.items():
        table.add_row(option, str(value), reasons.get(option, ""))
    out.print(table)
    out.print("\n[bold]fidelity card[/bold]")
    for field, text in card.items():
        out.print(f"  [bold]{field}[/bold]: {text}", highlight=False)


def _reasons(spec: MethodSpec) -> dict[str, str]:
    """What stands below each option in its configuration's source."""
    return {
        option: " ".join((field.description or "").split()) for option, field in type(spec.config).model_fields.items()
    }
