"""Friends order by mail, in prose; the price is in a file; each gets a payment request."""

from __future__ import annotations

import random
from typing import Any

from world.people import BY_NAME
from world.prose import paragraph
from world.rows import Rows, moment
from world.scenario import Facts, Scenario, fill

_PRICES = """\
Copied from the sheet in the shed, so that it survives the next winter.

Delivery is free for everyone who helped, and nobody pays a deposit.
A <<unit>> was $<<old_price>> last year. The material costs more now, so from this spring a <<unit>> is $<<price>>.
Sacks that come back clean are worth a coffee, no more.
"""

_LETTERS = {
    "a": "Put me down for <<a_count>> this time, two of them are for my mother.",
    "b": "Last year <<b_before>> were not enough for us, so please make it <<b_count>> now.",
    "c": "We had said <<c_before>>, but Ola has moved out, and <<c_count>> will do for me alone.",
    "d": "If you can spare that many, I would like <<d_count>>; my cellar is dry again.",
    "e": "I took <<e_before>> a year ago and still have most of it, so there is nothing for me this time.",
}

_SOLUTION = r"""
profile = apis.supervisor.show_profile()
passwords = {row["account_name"]: row["password"] for row in apis.supervisor.show_account_passwords()}
file_system_token = apis.file_system.login(username=profile["email"], password=passwords["file_system"])["access_token"]
paths = apis.file_system.show_directory(
    directory_path="~/garden/", entry_type="files", access_token=file_system_token
)
price_path = [path for path in paths if "prices" in path][0]
prices = apis.file_system.show_file(file_path=price_path, access_token=file_system_token)
price = read("this year's price of a <<unit>>", prices["content"], r"from this spring a <<unit>> is \$(\d+\.\d\d)")
gmail_token = apis.gmail.login(username=profile["email"], password=passwords["gmail"])["access_token"]
threads = []
page = 0
while True:
    got = apis.gmail.show_inbox_threads(access_token=gmail_token, page_index=page, page_limit=20)
    if not got:
        break
    threads += got
    page += 1
replies = [row for row in threads if row["subject"] == "<<subject>>"]
letters = []
for reply in replies:
    letter = apis.gmail.show_thread(email_thread_id=reply["email_thread_id"], access_token=gmail_token)
    letters = letters + [letter]
bodies = {letter["emails"][0]["sender"]["name"]: letter["emails"][0]["body"] for letter in letters}
emails = {letter["emails"][0]["sender"]["name"]: letter["emails"][0]["sender"]["email"] for letter in letters}
thread_ids = {letter["emails"][0]["sender"]["name"]: letter["email_thread_id"] for letter in letters}
first_count = read("how many <<a>> wants", bodies["<<a>>"], r"Put me down for (\d+) this time")
second_count = read("how many <<b>> wants", bodies["<<b>>"], r"so please make it (\d+) now")
third_count = read("how many <<c>> wants", bodies["<<c>>"], r"moved out, and (\d+) will do")
fourth_count = read("how many <<d>> wants", bodies["<<d>>"], r"I would like (\d+); my cellar")
orders = [
    {"name": "<<a>>", "amount": round(float(price) * int(first_count), 2)},
    {"name": "<<b>>", "amount": round(float(price) * int(second_count), 2)},
    {"name": "<<c>>", "amount": round(float(price) * int(third_count), 2)},
    {"name": "<<d>>", "amount": round(float(price) * int(fourth_count), 2)},
]
venmo_token = apis.venmo.login(username=profile["email"], password=passwords["venmo"])["access_token"]
for order in orders:
    apis.venmo.create_payment_request(
        user_email=emails[order["name"]],
        amount=order["amount"],
        description="<<goods>>",
        access_token=venmo_token,
    )
for order in orders:
    apis.gmail.label_thread(
        email_thread_id=thread_ids[order["name"]], label="ordered", access_token=gmail_token
    )
total = round(sum(order["amount"] for order in orders), 2)
apis.supervisor.complete_task(answer=total)
"""

_EVALUATION = """
with test("assert that nothing but payment requests and labels has changed."):
    expected = {"gmail.UserEmailThread", "venmo.Notification", "venmo.PaymentRequest"}
    test.case(models.changed_model_names(), "==", expected)
with test("assert that everyone who orders is asked for the right amount, once."):
    added, updated, removed = models.changed_records("venmo.PaymentRequest")
    asked = sorted([record.receiver_id, record.amount] for record in added)
    test.case(asked, "==", sorted(list(order) for order in private_data.orders))
    test.case(len(updated) + len(removed), "==", 0)
with test("assert that the requests say what they are for."):
    added, updated, removed = models.changed_records("venmo.PaymentRequest")
    test.case({record.description for record in added}, "==", {"<<goods>>"})
with test("assert that exactly the orders' threads are labelled."):
    added, updated, removed = models.changed_records("gmail.UserEmailThread")
    test.case(len(added) + len(removed), "==", 0)
    labelled = sorted((record.sender_names[0], record.label) for record in updated)
    test.case(labelled, "==", sorted((name, "ordered") for name in private_data.names))
    test.case({record.user_id for record in updated}, "==", {main_user.id})
"""


def _arrange(rows: Rows, facts: Facts) -> None:
    rng = random.Random(f"orders {rows.me.number}")
    rows.file("garden/prices.txt", fill(_PRICES, facts), moment(4, 11))
    rows.file("garden/beds.txt", paragraph(rng, 4), moment(3, 30))
    for number, (who, line) in enumerate(_LETTERS.items()):
        sender = BY_NAME[facts[who]]
        body = (
            f"Dear {rows.me.first_name},\n\n{paragraph(rng, 3)}\n\nAbout your question: {fill(line, facts)}\n\n"
            f"{paragraph(rng, 2)}\n\n{sender.first_name}"
        )
        rows.mail(sender, rows.me, facts["subject"], body, moment(5, 3 + number, 17))


def _private(facts: Facts) -> dict[str, Any]:
    orders = [[BY_NAME[facts[who]].number, round(float(facts["price"]) * facts[f"{who}_count"], 2)] for who in "abcd"]
    return {"orders": orders, "names": [facts[who] for who in "abcd"]}


def _variant(words: dict[str, str], people: tuple[str, ...], counts: tuple[int, ...]) -> dict[str, Any]:
    """``counts``: what the first four want, then what the second, third and fifth took before."""
    facts: dict[str, Any] = {**words, **dict(zip("abcde", people, strict=True))}
    names = ("a_count", "b_count", "c_count", "d_count", "b_before", "c_before", "e_before")
    facts.update(zip(names, counts, strict=True))
    facts["answer"] = round(sum(float(facts["price"]) * facts[f"{who}_count"] for who in "abcd"), 2)
    return facts


ORDERS = Scenario(
    name="own2c3d",
    split="test_normal",
    difficulty=3,
    apps=("file_system", "gmail", "venmo"),
    variants=(
        _variant(
            {"goods": "Honey", "unit": "jar", "subject": "Honey this year", "old_price": "4.10", "price": "4.85"},
            ("Omar Keel", "Edda Frost", "Cleo Marsh", "Viktor Ames", "Wanda Pike"),
            (6, 5, 2, 9, 3, 4, 7),
        ),
        _variant(
            {"goods": "Potatoes", "unit": "bag", "subject": "Potatoes, who?", "old_price": "7.20", "price": "8.35"},
            ("Sana Whit", "Gil Tarrant", "Quentin Pryce", "Una Morrow", "Theo Larkin"),
            (4, 7, 3, 5, 6, 8, 2),
        ),
        _variant(
            {"goods": "Apple juice", "unit": "crate", "subject": "Juice again", "old_price": "11.60", "price": "12.95"},
            ("Dov Linden", "Lena Voss", "Arno Beck", "Tomas Brill", "Petra Ansel"),
            (3, 4, 6, 2, 1, 7, 5),
        ),
    ),
    arrange=_arrange,
    instruction="""
        I had asked some friends by mail whether they want <<goods>> again; their answers in my Gmail inbox have the
        subject "<<subject>>". What a <<unit>> costs this year is in a text file in ~/garden/. Send a Venmo payment
        request with "<<goods>>" as the description to each of those who order something, for what they order, and
        label their threads "ordered". Tell me how much I will get in all.
    """,
    solution=_SOLUTION,
    slip=(r"from this spring a <<unit>> is \$(\d+\.\d\d)", r"A <<unit>> was \$(\d+\.\d\d) last year"),
    evaluation=_EVALUATION,
    private=_private,
)
