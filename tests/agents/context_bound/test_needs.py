"""What a cell needs is read off its code."""

from __future__ import annotations

import pytest

from flexmem.agents.context_bound.needs import Api, needs_of, normal_placeholders


def test_names_are_those_bound_elsewhere() -> None:
    needs = needs_of("rows = first + [row for row in second if row['x'] > limit]\nprint(rows, len(rows))")
    assert needs.names == ("first", "second", "limit")
    assert needs.binds == ("rows",)


def test_modules_lambdas_and_builtins_are_no_needs() -> None:
    needs = needs_of("import re\nfound = sorted(rows, key=lambda row: re.sub('a', pad, row['b']))")
    assert needs.names == ("rows", "pad")


def test_calls_are_told_with_their_keywords() -> None:
    needs = needs_of("print(apis.shop.pay(email=apis.book.find(name='x')['email'], amount=3, access_token=token))")
    assert needs.apis == (Api("shop", "pay", ("access_token", "amount", "email")), Api("book", "find", ("name",)))
    assert needs.names == ("token",)


def test_what_is_read_by_eye_is_a_placeholder() -> None:
    needs = needs_of("debt = float({lit:owed}) + sum({lit:other} for _ in rows)")
    assert needs.values == ("owed", "other")
    assert needs.names == ("rows",)
    assert normal_placeholders("pay({lit: owed})") == "pay({lit:owed})"


def test_a_variable_of_a_comprehension_hides_an_outer_one_only_within() -> None:
    assert needs_of("a = [x for x in y] + x").names == ("y", "x")


def test_what_a_cell_reads_of_itself_after_binding_is_no_need() -> None:
    assert needs_of("a = b\nc = a").names == ("b",)
    assert needs_of("a += b").names == ("b", "a")


def test_code_that_is_no_python_is_refused() -> None:
    with pytest.raises(SyntaxError):
        needs_of("a = (")
