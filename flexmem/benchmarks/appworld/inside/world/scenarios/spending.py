"""A question that the list of payments answers."""

from __future__ import annotations

import random
from typing import Any

from world.people import PEOPLE
from world.prose import PAYMENTS
from world.rows import Rows, moment
from world.scenario import Facts, Scenario

_MONTHS = {2: "February", 3: "March", 4: "April"}

_SOLUTION = r"""
profile = apis.supervisor.show_profile()
passwords = {row["account_name"]: row["password"] for row in apis.supervisor.show_account_passwords()}
venmo_token = apis.venmo.login(username=profile["email"], password=passwords["venmo"])["access_token"]
payments = []
page = 0
while True:
    got = apis.venmo.show_transactions(access_token=venmo_token, page_index=page, page_limit=20)
    if not got:
        break
    payments += got
    page += 1
sent = [row for row in payments if row["sender"]["email"] == profile["email"]]
in_month = [row for row in sent if row["created_at"].startswith("2023-<<month_number>>")]
total = round(sum(row["amount"] for row in in_month), 2)
apis.supervisor.complete_task(answer=total)
"""

_EVALUATION = """
with test("assert that nothing has changed."):
    test.case(models.changed_model_names(), "==", set())
"""


def _arrange(rows: Rows, facts: Facts) -> None:
    others = [person for person in PEOPLE if person is not rows.me]
    rng = random.Random(f"spending {rows.me.number}")
    for month in _MONTHS:
        mine = facts["sent"] if month == facts["month"] else [round(value + month, 2) for value in facts["sent"][:2]]
        for place, amount in enumerate(mine):
            rows.payment(rows.me, rng.choice(others), amount, rng.choice(PAYMENTS), moment(month, 3 + 4 * place, 11))
        for place, amount in enumerate(facts["received"]):
            rows.payment(rng.choice(others), rows.me, amount, rng.choice(PAYMENTS), moment(month, 5 + 4 * place, 15))


def _private(facts: Facts) -> dict[str, Any]:
    return {"sent": list(facts["sent"])}


def _variant(month: int, sent: list[float], received: list[float]) -> dict[str, Any]:
    return {
        "month": month,
        "month_name": _MONTHS[month],
        "month_number": f"{month:02d}",
        "sent": sent,
        "received": received,
        "answer": round(sum(sent), 2),
    }


SPENDING = Scenario(
    name="own7a8b",
    split="dev",
    difficulty=1,
    apps=("venmo",),
    variants=(
        _variant(4, [18.40, 7.25, 52.10, 33.65, 4.90], [12.30, 21.75]),
        _variant(3, [64.15, 9.80, 27.35, 15.20, 41.60, 5.05], [8.45, 30.10]),
        _variant(2, [22.95, 48.70, 3.15, 19.85], [17.60, 6.40, 11.25]),
    ),
    arrange=_arrange,
    instruction="""
        How much money have I sent to others with Venmo in <<month_name>> of this year, in all?
    """,
    solution=_SOLUTION,
    slip=('[row for row in payments if row["sender"]["email"] == profile["email"]]', "list(payments)"),
    evaluation=_EVALUATION,
    private=_private,
)
