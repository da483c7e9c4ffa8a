"""Tasks of the toy world: a solution each, and what the world's state must be in the end."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import cache
from typing import Any

from flexmem.agents.context_bound.plan import Plan
from flexmem.agents.context_bound.variation import Variation
from flexmem.benchmarks.context_bound.cutting import cut
from tests.agents.context_bound.toy_world import CONVENTIONS, Toy

_HEAD = """
import re


def read(label, text, pattern):
    return re.search(pattern, text, re.S).group(1)


def solution(apis, requester):
    profile = apis.supervisor.show_profile()
    passwords = {row["account_name"]: row["password"] for row in apis.supervisor.show_account_passwords()}
"""
_SHOP = """
    shop_token = apis.shop.login(username=profile["email"], password=passwords["shop"])["access_token"]
    goods = []
    page = 0
    while True:
        got = apis.shop.search_goods(query="", page_index=page, page_limit=20, access_token=shop_token)
        if not got:
            break
        goods += got
        page += 1
"""
_NOTES = """
    notes_token = apis.notes.login(username=profile["email"], password=passwords["notes"])["access_token"]
    notes = []
    page = 0
    while True:
        got = apis.notes.search_notes(page_index=page, page_limit=20, access_token=notes_token)
        if not got:
            break
        notes += got
        page += 1
"""


@dataclass(frozen=True)
class Task:
    """``wanted`` is the state that counts as success."""

    name: str
    instruction: str
    solution: str
    wanted: dict[str, Any]

    def succeeded(self, world: Toy) -> bool:
        """Whether the world is as it should be; the order of what was done does not matter."""
        as_sorted = {name: sorted(value) if isinstance(value, list) else value for name, value in world.state.items()}
        return world.done and as_sorted == self.wanted


LIKES = Task(
    "likes",
    "Like every lamp that costs less than 4.",
    _HEAD
    + _SHOP
    + """
    cheap = [row for row in goods if row["price"] < 4]
    for good in cheap:
        apis.shop.like_good(good_id=good["good_id"], access_token=shop_token)
    apis.supervisor.complete_task()
""",
    {"liked": [100 + n for n in range(23) if n * 7 % 13 < 4], "paid": [], "added": [], "answer": None},
)
DEBTS = Task(
    "debts",
    "Pay the sellers of lamps 2 and 5 what notes 2 and 5 say, write so below them, and tell the sum.",
    _HEAD
    + _NOTES
    + """
    wanted = [row for row in notes if row["title"] in ("Note 2", "Note 5")]
    letters = []
    for note in wanted:
        letter = apis.notes.show_note(note_id=note["note_id"], access_token=notes_token)
        letters = letters + [letter["content"]]
    first = read("what the second cost", letters[0], r"cost \\$(\\d+\\.\\d\\d) in the café")
    second = read("what the fifth cost", letters[1], r"cost \\$(\\d+\\.\\d\\d) in the café")
    debts = [{"good_id": 102, "amount": float(first)}, {"good_id": 105, "amount": float(second)}]
    shop_token = apis.shop.login(username=profile["email"], password=passwords["shop"])["access_token"]
    for debt in debts:
        good = apis.shop.show_good(good_id=debt["good_id"], access_token=shop_token)
        apis.shop.pay(email=good["seller"]["email"], amount=debt["amount"], access_token=shop_token)
    for note in wanted:
        done = apis.notes.append(note_id=note["note_id"], text="paid", access_token=notes_token)
    total = round(sum(debt["amount"] for debt in debts), 2)
    apis.supervisor.complete_task(answer=total)
""",
    {
        "liked": [],
        "paid": [["seller2@example.com", 5.25], ["seller5@example.com", 8.25]],
        "added": [[14, "paid"], [35, "paid"]],
        "answer": 13.5,
    },
)
ALL = Task(
    "all",
    "Like every lamp whose text does not speak of brass.",
    _HEAD
    + _SHOP
    + """
    for good in goods:
        if "brass" in good["text"]:
            continue
        apis.shop.like_good(good_id=good["good_id"], access_token=shop_token)
    apis.supervisor.complete_task(answer=len(goods))
""",
    {
        "liked": [
            row["good_id"]
            for row in Toy()._search_goods(query="", page_index=0, page_limit=99)
            if "brass" not in row["text"]
        ],
        "paid": [],
        "added": [],
        "answer": 23,
    },
)
TASKS = {task.name: task for task in (LIKES, DEBTS, ALL)}


@cache
def plan_of(name: str, seed: int) -> Plan:
    """A task's plan as a seed varies it."""
    task, world = TASKS[name], Toy()

    async def execute(code: str) -> str:
        return world.execute(code)

    variation = Variation.draw(name, seed)
    return asyncio.run(cut(task.solution, task.instruction, variation, CONVENTIONS, execute))
