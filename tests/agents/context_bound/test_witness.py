"""What counts as shown: names, uses and marks in any text, values and documentation word for word."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexmem.agents.context_bound.needs import Api
from flexmem.agents.context_bound.plan import Mark, Value
from flexmem.agents.context_bound.witness import Sight, decode
from flexmem.benchmarks.context_bound.showing import field_pattern, prose_pattern
from tests.agents.context_bound.toy_world import CONVENTIONS

PAY = Api("shop", "pay", ("access_token", "amount", "email"))


def sight(text: str) -> Sight:
    return Sight(text, CONVENTIONS)


@pytest.mark.parametrize(
    "text",
    [
        "```python\ntoken_kob = apis.shop.login(username=u)\n```",
        "15: token_kob = apis.shop.login(username=u); 16: …",
        "apis.shop.pay(email=e, access_token=token_kob)",
        "print(token_kob)",
        "[u03-u07 | merged] 3: len(a, token_kob, b)",
    ],
)
def test_a_variable_is_seen_where_it_is_assigned_or_passed(text: str) -> None:
    assert sight(text).name("token_kob")


@pytest.mark.parametrize(
    "text",
    [
        "token_kobold = 3",
        "my_token_kob = 3",
        "row.token_kob = 3",
        '{"token_kob": "eyJ"}',
        "NameError: name 'token_kob' is not defined",
        "the token_kob is somewhere",
        "token_ko\n[...]\nb = 3",
        "token_kob == 3",
    ],
)
def test_a_variable_is_not_seen_in_other_words(text: str) -> None:
    assert not sight(text).name("token_kob")


def test_an_api_is_known_by_use_or_by_its_whole_documentation() -> None:
    document = json.dumps(
        {
            "app_name": "shop",
            "api_name": "pay",
            "parameters": [{"name": "email"}, {"name": "amount"}, {"name": "access_token"}],
        },
        indent=1,
    )
    assert sight(document).documented(PAY)
    assert not sight(document).used(PAY)
    assert sight("-> apis.shop.pay(email=…").used(PAY)
    assert not sight(document.replace('"name": "amount"', '"name": "amou')).documented(PAY)
    assert not sight(document.replace('"shop"', '"bank"')).documented(PAY)
    other = document.replace('"pay"', '"owe"')
    assert not sight(document[: document.index('"name": "amount"')] + "\n[...]\n" + other).documented(PAY)
    cut = document[document.index('"api_name"') :]
    assert sight(cut).documented(PAY)


MARK = Mark("shop", "like", ("good_id=17",))


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("apis.shop.like(good_id=17, access_token=t)", True),
        ("apis.shop.like(access_token=t, good_id=17)", True),
        ("15: apis.shop.like(good_id=17,; 16: …", True),
        ("[u01-u04 | merged] 15: apis.shop.like(good_id=17; 16: apis.shop.like(good_id=3;", True),
        ("apis.shop.like(good_id=175, access_token=t)", False),
        ("apis.shop.like(good_id=1", False),
        ("apis.shop.like(good_id=17\n[...]\n5)", False),
        ("apis.shop.like(good_id=3) apis.shop.pay(good_id=17)", False),
        ("apis.shop.like(good_id=3)\ngood_id=17)", False),
        ("apis.shop.unlike(good_id=17)", False),
    ],
)
def test_a_mark_is_the_own_call_with_its_argument_whole(text: str, seen: bool) -> None:
    assert sight(text).mark(MARK) is seen


def test_a_failure_that_is_shown_cancels_a_mark() -> None:
    call = "apis.shop.like(good_id=17, access_token=t)"
    failed = f"{call}\nOutput:\nExecution failed. Traceback:\n  {call}\nException: Response status code is 401:\nno"
    assert not sight(failed).mark(MARK)
    assert sight(f"{failed}\n{call}\nOutput:\nliked").mark(MARK)
    assert sight(failed.replace("no", "You like it already.")).mark(MARK)
    assert sight(f"{call}\n[output omitted: 4 lines]\n").mark(MARK)


ROW = {"good_id": 102, "title": "Lamp 2 is tall", "seller": {"email": "s@example.com"}, "price": 4.5}
OTHERS = [{"good_id": 103, "title": "Lamp 2 is tall", "seller": {"email": "t@example.com"}, "price": 9}]


def test_a_field_is_seen_with_what_tells_its_object_from_others() -> None:
    shown = field_pattern(ROW, "good_id", OTHERS)
    value = Value("x", 102, shown, "json", "print(row)")
    for indent in (None, 1):
        found = sight(json.dumps([OTHERS[0], ROW], indent=indent)).value(value)
        assert found is not None
        assert (found.text, found.value) == ("102", 102)
    assert sight(" ".join(json.dumps(ROW, indent=1).split())).value(value) is not None
    assert sight(json.dumps({**ROW, "price": 4.6})).value(value) is None
    assert sight(json.dumps({"good_id": 102})).value(value) is None


TEXT = 'It rained.\nFor the "tall" lamp I owe Bram $43.25 since the café, and more.\nAll good.'


def test_a_value_in_prose_is_seen_printed_or_within_json() -> None:
    start = TEXT.index("43.25")
    shown = prose_pattern(TEXT, start, start + 5, TEXT.index("I owe"), start + 5)
    value = Value("x", "43.25", shown, "text", "print(text)")
    for text in (TEXT, json.dumps({"content": TEXT}), " ".join(TEXT.split())):
        found = sight(text).value(value)
        assert found is not None
        assert found.value == "43.25"
    for text in (TEXT.replace("Bram", "Cleo"), TEXT.replace("43.25", "43.255"), TEXT.replace("43.25", "43.\n25")):
        assert sight(text).value(value) is None


@given(st.integers(0, len(TEXT) - 1))
def test_a_value_cut_anywhere_within_is_not_seen(cut: int) -> None:
    start = TEXT.index("43.25")
    shown = prose_pattern(TEXT, start, start + 5, TEXT.index("I owe"), start + 5)
    broken = f"{TEXT[:cut]}\n[...]\n{TEXT[cut:]}"
    value = Value("x", "43.25", shown, "text", "print(text)")
    within = TEXT.index("I owe") < cut < start + 5
    if within:
        assert sight(broken).value(value) is None
    elif cut < TEXT.index('"tall"') or cut > start + 12:
        assert sight(broken).value(value) is not None


@given(st.text(min_size=1, max_size=40), st.text(min_size=1, max_size=40))
def test_whatever_a_field_holds_is_found_in_json_and_decoded(value: str, other: str) -> None:
    row = {"a": value, "b": other}
    shown = field_pattern(row, "a", [{"a": value, "b": other + "x"}])
    found = sight(json.dumps([row], indent=1)).value(Value("x", value, shown, "json", ""))
    assert found is not None
    assert found.value == value


def test_values_are_decoded_as_they_were_printed() -> None:
    assert decode('"caf\\u00e9"', "json") == "café"
    assert decode("'it'", "json") == "it"
    assert decode("4.50", "json") == 4.5
    assert decode("caf\\u00e9", "text") == "café"
    assert decode("43.25", "text") == "43.25"
