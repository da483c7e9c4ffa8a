"""Prompt templates: one place, readable, digested into fingerprints."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from string import Template


@cache
def template(name: str) -> Template:
    """The template ``flexmem/memory/prompt_texts/<name>.txt``; placeholders are ``$name``."""
    return Template(files("flexmem.memory").joinpath("prompt_texts", f"{name}.txt").read_text("utf-8"))


def prompt_digest(*names: str) -> str:
    """BLAKE2b of the named templates' texts."""
    digest = hashlib.blake2b(digest_size=16)
    for name in names:
        digest.update(name.encode() + b"\0" + template(name).template.encode() + b"\0")
    return digest.hexdigest()


def all_prompts() -> tuple[str, ...]:
    """The names of all templates."""
    folder = files("flexmem.memory").joinpath("prompt_texts")
    return tuple(sorted(entry.name.removesuffix(".txt") for entry in folder.iterdir() if entry.is_file()))
