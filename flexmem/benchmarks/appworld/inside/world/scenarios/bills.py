"""Bills are text files: the paid ones are moved, those that are due become a note and a mail to the accountant."""

from __future__ import annotations

import random
from typing import Any

from world.furniture import ACCOUNTANTS
from world.people import BY_NAME, PEOPLE
from world.prose import paragraph
from world.rows import Rows, moment
from world.scenario import Facts, Scenario, fill

_OPEN = (
    "For this quarter we charge $<<part>>. With the $<<rest>> that was left from the winter, the amount due is "
    "$<<due>>, payable within thirty days.",
    "The work and the parts come to $<<part>>. As agreed we take off $<<rest>> for the delay, which leaves $<<due>> "
    "for you to pay.",
    "Your share of the costs of the house was $<<part>>. We have already received $<<rest>>; kindly transfer the "
    "missing $<<due>> by the end of the month.",
    "The subscription is $<<part>> a month. Two months are charged together with a fee of $<<rest>>, so that this bill"
    " amounts to $<<due>>.",
    "Lessons: $<<part>>. Sheet music: $<<rest>>. Please bring both, that is $<<due>>, to the first lesson in June.",
)
_PAID = (
    "The sum of $<<due>> has been paid on 2 May, thank you very much; this copy is for your records.",
    "Nothing is open here: the $<<due>> for the spring has been paid in cash at our counter.",
)

_OFFERS = (
    "This is an offer and no bill: we would do all of it for $<<due>>, if you write to us before the end of June.",
    "Nobody has ordered anything yet. Should you decide on the larger size, it would be $<<due>> with delivery.",
)

_SOLUTION = r"""
profile = apis.supervisor.show_profile()
passwords = {row["account_name"]: row["password"] for row in apis.supervisor.show_account_passwords()}
file_system_token = apis.file_system.login(username=profile["email"], password=passwords["file_system"])["access_token"]
paths = apis.file_system.show_directory(
    directory_path="~/bills/open/", entry_type="files", access_token=file_system_token
)
bills = []
for path in paths:
    bill = apis.file_system.show_file(file_path=path, access_token=file_system_token)
    bills = bills + [bill]
texts = {bill["content"].splitlines()[0]: bill["content"] for bill in bills}
paid_paths = [bill["path"] for bill in bills if "has been paid" in bill["content"]]
first_due = read("the amount due to <<c1>>", texts["<<c1>>"], r"winter, the amount due is \$(\d+\.\d\d),")
second_due = read("what is left to pay to <<c2>>", texts["<<c2>>"], r"the delay, which leaves \$(\d+\.\d\d) for you")
third_due = read("what is missing at <<c3>>", texts["<<c3>>"], r"kindly transfer the missing \$(\d+\.\d\d) by")
fourth_due = read("what <<c4>> amounts to", texts["<<c4>>"], r"so that this bill amounts to \$(\d+\.\d\d)\.")
fifth_due = read("what to bring to <<c5>>", texts["<<c5>>"], r"Please bring both, that is \$(\d+\.\d\d), to")
sums = {
    "<<c1>>": first_due,
    "<<c2>>": second_due,
    "<<c3>>": third_due,
    "<<c4>>": fourth_due,
    "<<c5>>": fifth_due,
}
total = round(sum(float(due) for due in sums.values()), 2)
lines = [name + ": " + sums[name] for name in sorted(sums)] + ["Total: " + format(total, ".2f")]
for path in paid_paths:
    apis.file_system.move_file(
        source_file_path=path,
        destination_file_path="~/bills/paid/" + path.split("/")[-1],
        access_token=file_system_token,
    )
simple_note_token = apis.simple_note.login(username=profile["email"], password=passwords["simple_note"])["access_token"]
note = apis.simple_note.create_note(title="<<title>>", content="\n".join(lines), access_token=simple_note_token)
phone_token = apis.phone.login(username=profile["phone_number"], password=passwords["phone"])["access_token"]
contacts = []
page = 0
while True:
    got = apis.phone.search_contacts(access_token=phone_token, page_index=page, page_limit=20)
    if not got:
        break
    contacts += got
    page += 1
accountant = [row["email"] for row in contacts if "accountant" in row["relationships"]][0]
gmail_token = apis.gmail.login(username=profile["email"], password=passwords["gmail"])["access_token"]
mail = apis.gmail.send_email(
    email_addresses=[accountant], subject="<<title>>", body="\n".join(lines), access_token=gmail_token
)
apis.supervisor.complete_task(answer=total)
"""

_EVALUATION = """
with test("assert that nothing but files, a note and a mail has changed."):
    allowed = {
        "file_system.Directory",
        "file_system.File",
        "gmail.Email",
        "gmail.GlobalEmailThread",
        "gmail.UserEmailThread",
        "simple_note.Note",
    }
    test.case(models.changed_model_names() | {"file_system.Directory"}, "==", allowed)
with test("assert that exactly the paid bills have moved, unchanged."):
    added, updated, removed = models.changed_records("file_system.File")
    moved = {record.path: record.content for record in added + updated}
    test.case(moved, "==", dict(private_data.moved))
    gone = sorted(record.path.split("/")[-1] for record in removed)
    test.case(len(gone), "==", len(private_data.moved) - len(updated))
with test("assert that the note has the open amounts and their sum."):
    added, updated, removed = models.changed_records("simple_note.Note")
    written = [(record.title, record.content.strip(), record.user_id) for record in added]
    test.case(written, "==", [("<<title>>", private_data.text, main_user.id)])
    test.case(len(updated) + len(removed), "==", 0)
with test("assert that the accountant has got the same text."):
    added, updated, removed = models.changed_records("gmail.Email")
    sent = [(list(record.recipient_ids), record.subject, record.body.strip()) for record in added]
    test.case(sent, "==", [([private_data.accountant_id], "<<title>>", private_data.text)])
"""


def _name(company: str) -> str:
    return company.lower().replace(" ", "-") + ".txt"


def _content(facts: Facts, number: int) -> str:
    """The text of the bill with that number, from 1: five that are open, two that are paid, and two offers."""
    rng = random.Random(f"bill {facts['number']} {number}")
    sentence = (*_OPEN, *_PAID, *_OFFERS)[number - 1]
    part, rest, due = facts["sums"][number - 1]
    amounts = {"part": f"{part:.2f}", "rest": f"{rest:.2f}", "due": f"{due:.2f}"}
    head = (
        f"{facts[f'c{number}']}\n{rng.randrange(1, 90)} Dyer's Yard, Alderby, {rng.randrange(10_000, 99_999)}\n"
        f"No. {rng.randrange(1_000, 9_999)}, customer {rng.randrange(100, 999)}, your letter of {rng.randrange(1, 28)} "
        f"March, our clerk: {rng.choice(PEOPLE).name}\nOffice hours: Monday to Thursday, 8:30 to 12:00"
    )
    return f"{head}\n\n{paragraph(rng, 5)}\n\n{fill(sentence, amounts)}\n\n{paragraph(rng, 6)}\n"


def _arrange(rows: Rows, facts: Facts) -> None:
    for folder in ("bills/", "bills/open/", "bills/paid/"):
        rows.folder(folder)
    for number in range(1, len(facts["sums"]) + 1):
        rows.file(f"bills/open/{_name(facts[f'c{number}'])}", _content(facts, number), moment(4, 10 + number))


def _private(facts: Facts) -> dict[str, Any]:
    me = PEOPLE[facts["number"] - 1]
    sums = {facts[f"c{number}"]: facts["sums"][number - 1][2] for number in range(1, len(_OPEN) + 1)}
    lines = [f"{company}: {sums[company]:.2f}" for company in sorted(sums)]
    paid = range(len(_OPEN) + 1, len(_OPEN) + len(_PAID) + 1)
    folder = f"/home/{me.first_name.lower()}/bills/paid/"
    return {
        "text": "\n".join([*lines, f"Total: {facts['answer']:.2f}"]),
        "moved": [[folder + _name(facts[f"c{number}"]), _content(facts, number)] for number in paid],
        "accountant_id": BY_NAME[ACCOUNTANTS[facts["number"] - 1]].number,
    }


def _variant(number: int, title: str, companies: str, sums: str) -> dict[str, Any]:
    """``sums``: two numbers for each open bill, and one for each that is paid or an offer."""
    values = [float(value) for value in sums.split()]
    (a, b), (c, d), (e, f), (g, h), (i, j) = zip(values[:10:2], values[1:10:2], strict=True)
    dues = [a + b, c - d, e - f, 2 * g + h, i + j]
    parts = [(a, b), (c, d), (e, f), (g, h), (i, j)]
    rows = [(part, rest, round(due, 2)) for (part, rest), due in zip(parts, dues, strict=True)]
    rows += [(value, 0.0, value) for value in values[10:]]
    names = {f"c{place}": name.strip() for place, name in enumerate(companies.split("/"), 1)}
    total = round(sum(due for _, _, due in rows[: len(_OPEN)]), 2)
    return {"number": number, "title": title, "sums": rows, "answer": total, **names}


BILLS = Scenario(
    name="own5c6d",
    split="test_challenge",
    difficulty=3,
    apps=("file_system", "gmail", "phone", "simple_note"),
    variants=(
        _variant(
            1,
            "Open bills in May",
            "Alderby Water Works / Lock and Key Service / Mill Lane House Fund / Paper and Post / Music School /"
            " Chimney Sweep / Bicycle Workshop / Green Roofs / Stove and Flue",
            "41.20 8.15 96.50 12.00 210.40 150.00 17.90 4.60 64.00 13.75 38.00 27.45 1450.00 620.00",
        ),
        _variant(
            2,
            "What is open this spring",
            "Harbour Electric / Roof and Gutter / Orchard Way House Fund / Radio Weekly / Dance School / Laundry Court"
            " / Window Cleaner / Balcony Awnings / Carpet House",
            "58.35 11.05 143.00 18.50 187.25 120.00 12.40 3.90 72.00 9.60 21.30 44.00 380.00 715.00",
        ),
        _variant(
            3,
            "Bills, second quarter",
            "Station Square Heating / Joiner at the Canal / Upper Market House Fund / Garden Monthly / Drawing Class /"
            " Key Cutter / Piano Tuner / Solar Panels / Bookbinder",
            "132.80 24.65 88.90 10.40 265.10 200.00 9.75 2.35 54.50 16.20 12.00 95.00 2100.00 145.00",
        ),
    ),
    arrange=_arrange,
    instruction="""
        The files in ~/bills/open/ are this spring's bills. Move those that have been paid, by what they say, to
        ~/bills/paid/, and leave mere offers where they are. Write what is due on the others into a new Simple Note
        titled "<<title>>": a line for each bill, sorted by company, with the company (the bill's first line), a colon,
        a space and the amount like 12.30, and as the last line "Total: " and their sum. Then mail the same text with
        the note's title as the subject to my accountant, whom you find in my phone's contacts, and tell me the sum.
    """,
    solution=_SOLUTION,
    slip=(r"winter, the amount due is \$(\d+\.\d\d),", r"this quarter we charge \$(\d+\.\d\d)\."),
    evaluation=_EVALUATION,
    private=_private,
)
