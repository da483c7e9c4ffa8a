"""Documentation and log-in calls that an episode repeats."""

from __future__ import annotations

import pytest

from flexmem.benchmarks.appworld.setup_loops import count_setup_loops, setup_calls

DOC = 'print(apis.api_docs.show_api_doc(app_name="venmo", api_name="login"))'


@pytest.mark.parametrize(
    ("code", "calls"),
    [
        (DOC, ["api_docs.show_api_doc(api_name='login', app_name='venmo')"]),
        # The order of arguments is no difference.
        (
            "apis.api_docs.show_api_doc(api_name='login', app_name='venmo')",
            ["api_docs.show_api_doc(api_name='login', app_name='venmo')"],
        ),
        ("t = apis.venmo.login(username=u, password=p)['access_token']", ["venmo.login"]),
        ("apis.venmo.show_transactions(page_index=0)", []),
        ("other.venmo.login()", []),
        ("apis.venmo.login(", []),
        ("x = 'apis.venmo.login()'", []),
        ("apis.a.login(); apis.b.login()", ["a.login", "b.login"]),
    ],
)
def test_set_up_calls_are_found_in_code(code: str, calls: list[str]) -> None:
    assert sorted(setup_calls(code)) == calls


def test_the_third_time_is_a_loop() -> None:
    login = "apis.venmo.login(username=u, password=p)"
    assert count_setup_loops([login, DOC]) == (0, 0)
    assert count_setup_loops([login, login]) == (0, 1)
    assert count_setup_loops([login, DOC, login, login]) == (1, 2)
    assert count_setup_loops([login] * 3 + [DOC] * 4) == (2, 5)
