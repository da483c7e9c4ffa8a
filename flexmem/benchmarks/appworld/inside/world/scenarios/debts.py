"""A note says in prose what is owed to whom, the phone has the addresses, and Venmo tells what has been paid since."""

from __future__ import annotations

from typing import Any

from world.people import BY_NAME
from world.prose import PAYMENTS, TITLES
from world.rows import Rows, moment
from world.scenario import Facts, Scenario, fill

_NOTE = """\
Five days in <<town>>, and nobody lost a passport. What is still open, before I forget it:

The hostel went on the card of <<a>>, who paid $<<a_total>> for the four rooms; my part of that comes to $<<a_owed>>.
The ferry tickets were bought on the pier by <<b>>, $<<b_total>> together, of which $<<b_owed>> was for mine.
The dinner on the last evening was laid out by <<c>>. The bill said $<<c_total>>, I ate for $<<c_owed>>, wine included.
The museum was an idea of <<d>>, who paid for us both at once: I still owe $<<d_owed>> of those $<<d_total>>.
For the taxi I had borrowed $<<e_owed>> from <<e>>, but that is settled, in cash, with a napkin as the receipt.

Next time somebody else writes this list.
"""

_SOLUTION = r"""
profile = apis.supervisor.show_profile()
passwords = {row["account_name"]: row["password"] for row in apis.supervisor.show_account_passwords()}
simple_note_token = apis.simple_note.login(username=profile["email"], password=passwords["simple_note"])["access_token"]
notes = []
page = 0
while True:
    got = apis.simple_note.search_notes(access_token=simple_note_token, page_index=page, page_limit=20)
    if not got:
        break
    notes += got
    page += 1
note_id = [row["note_id"] for row in notes if row["title"] == "<<title>>"][0]
note = apis.simple_note.show_note(note_id=note_id, access_token=simple_note_token)
hostel_payer = read("whose card the hostel went on", note["content"], r"went on the card of (\w+ \w+),")
hostel_debt = read("my part of the hostel", note["content"], r"four rooms; my part of that comes to \$(\d+\.\d\d)\.")
ferry_payer = read("who bought the ferry tickets", note["content"], r"on the pier by (\w+ \w+),")
ferry_debt = read("what my ferry ticket cost", note["content"], r"together, of which \$(\d+\.\d\d) was for mine")
dinner_payer = read("who laid out the dinner", note["content"], r"was laid out by (\w+ \w+)\.")
dinner_debt = read("what I ate for at dinner", note["content"], r"I ate for \$(\d+\.\d\d), wine")
museum_payer = read("who paid for the museum", note["content"], r"was an idea of (\w+ \w+),")
museum_debt = read("what I still owe for the museum", note["content"], r"I still owe \$(\d+\.\d\d) of those")
phone_token = apis.phone.login(username=profile["phone_number"], password=passwords["phone"])["access_token"]
contacts = []
page = 0
while True:
    got = apis.phone.search_contacts(access_token=phone_token, page_index=page, page_limit=20)
    if not got:
        break
    contacts += got
    page += 1
emails = {row["first_name"] + " " + row["last_name"]: row["email"] for row in contacts}
claims = [
    {"email": emails[hostel_payer], "amount": float(hostel_debt)},
    {"email": emails[ferry_payer], "amount": float(ferry_debt)},
    {"email": emails[dinner_payer], "amount": float(dinner_debt)},
    {"email": emails[museum_payer], "amount": float(museum_debt)},
]
venmo_token = apis.venmo.login(username=profile["email"], password=passwords["venmo"])["access_token"]
payments = []
page = 0
while True:
    got = apis.venmo.show_transactions(
        direction="sent", min_created_at="2023-05-01", access_token=venmo_token, page_index=page, page_limit=20
    )
    if not got:
        break
    payments += got
    page += 1
settled = [row["receiver"]["email"] for row in payments if row["description"].startswith("<<town>>")]
for debt in claims:
    if debt["email"] in settled:
        continue
    apis.venmo.create_transaction(
        receiver_email=debt["email"],
        amount=debt["amount"],
        description="<<town>>",
        private=True,
        access_token=venmo_token,
    )
closing = apis.simple_note.add_content_to_note(
    note_id=note_id, append_or_prepend="append", added_content="Paid on Venmo.", access_token=simple_note_token
)
apis.supervisor.complete_task()
"""

_EVALUATION = """
with test("assert that nothing but payments and notes has changed."):
    expected = {"simple_note.Note", "venmo.Notification", "venmo.Transaction", "venmo.User"}
    test.case(models.changed_model_names(), "==", expected)
with test("assert that everyone has got what the note says, once."):
    added, updated, removed = models.changed_records("venmo.Transaction")
    paid = sorted([record.receiver_id, record.amount] for record in added)
    test.case(paid, "==", sorted(list(debt) for debt in private_data.debts))
    test.case(len(updated) + len(removed), "==", 0)
with test("assert that the payments are private, from the balance, and say what they are for."):
    added, updated, removed = models.changed_records("venmo.Transaction")
    said = {(record.description, record.private, record.payment_card_digits) for record in added}
    test.case(said, "==", {("<<town>>", True, None)})
with test("assert that only the line at the end of the note is new."):
    added, updated, removed = models.changed_records("simple_note.Note")
    test.case(len(added) + len(removed), "==", 0)
    test.case([record.title for record in updated], "==", ["<<title>>"])
    lines = [line.strip() for line in updated[0].content.splitlines() if line.strip()]
    test.case(lines, "==", [*private_data.lines, "Paid on Venmo."])
"""


def _arrange(rows: Rows, facts: Facts) -> None:
    rows.note(facts["title"], fill(_NOTE, facts).strip(), ["travel"], moment(5, 9, 21))
    rows.note(f"{facts['town']}, to pack", "Adapter, rain coat, two books. " + TITLES[0], ["travel"], moment(4, 20))
    rows.payment(rows.me, BY_NAME[facts["d"]], float(facts["d_owed"]), f"{facts['town']}, museum", moment(5, 14, 12))
    for day, who in enumerate(("Gil Tarrant", "Arno Beck", facts["a"], "Edda Frost"), 3):
        rows.payment(rows.me, BY_NAME[who], 4.5 * day, PAYMENTS[day], moment(5, day, 8))


def _private(facts: Facts) -> dict[str, Any]:
    debts = [[BY_NAME[facts[who]].number, float(facts[f"{who}_owed"])] for who in "abc"]
    return {"debts": debts, "lines": [line for line in fill(_NOTE, facts).splitlines() if line]}


def _variant(town: str, title: str, people: tuple[str, ...], sums: str) -> dict[str, Any]:
    """``sums``: total and share of the first four, and the fifth's loan, in that order."""
    values = sums.split()
    facts = {"town": town, "title": title, **dict(zip("abcde", people, strict=True)), "e_owed": values[8]}
    for number, who in enumerate("abcd"):
        facts[f"{who}_total"], facts[f"{who}_owed"] = values[2 * number], values[2 * number + 1]
    return facts


DEBTS = Scenario(
    name="own1a2b",
    split="train",
    difficulty=3,
    apps=("phone", "simple_note", "venmo"),
    variants=(
        _variant(
            "Lisbon",
            "Lisbon, who paid what",
            ("Bram Otter", "Quentin Pryce", "Sana Whit", "Theo Larkin", "Lena Voss"),
            "173.00 43.25 61.60 15.40 118.75 27.90 36.00 18.00 22.50",
        ),
        _variant(
            "Trieste",
            "After Trieste",
            ("Jonas Hale", "Cleo Marsh", "Rafi Gorman", "Ines Rook", "Petra Ansel"),
            "209.40 52.35 47.20 11.80 97.10 31.65 29.50 14.75 19.00",
        ),
        _variant(
            "Bergen",
            "Bergen, still open",
            ("Yara Sund", "Omar Keel", "Quentin Pryce", "Xenia Dorn", "Bram Otter"),
            "288.60 72.15 93.20 23.30 154.05 38.45 41.00 20.50 26.80",
        ),
    ),
    arrange=_arrange,
    instruction="""
        My Simple Note called "<<title>>" tells what I still owed to others for our trip when I wrote it. Pay that to
        each of them from my Venmo balance, one payment a person, privately and with "<<town>>" as the description; but
        leave out whom I have already sent their money this month, with a description that begins with "<<town>>". Their
        addresses are in my phone's contacts. Then add a line that says "Paid on Venmo." to the end of that note.
    """,
    solution=_SOLUTION,
    slip=(r"four rooms; my part of that comes to \$(\d+\.\d\d)\.", r"who paid \$(\d+\.\d\d) for the four rooms"),
    evaluation=_EVALUATION,
    private=_private,
)
