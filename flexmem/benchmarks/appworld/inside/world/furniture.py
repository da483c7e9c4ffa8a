"""What a supervisor's apps hold before any task: contacts, mails, messages, notes, payments, files, projects."""

from __future__ import annotations

import random

from world.people import PEOPLE, Person
from world.prose import PAYMENTS, SUBJECTS, TITLES, letter, paragraph
from world.rows import Rows, moment

ACCOUNTANTS = ("Una Morrow", "Viktor Ames", "Wanda Pike")
COACHES = ("Gil Tarrant", "Arno Beck", "Edda Frost")
"""By the supervisor's number, less one."""

_MAILS = 18
_TEXTS = 17
_PAYMENTS = 26
_STREETS = ("Canal Street", "Mill Lane", "Harbour Road", "Station Square", "Orchard Way", "Upper Market")
_TIES = ("friend", "coworker", "neighbor", "friend", "relative")


def furnish(rows: Rows) -> None:
    """Fill my apps; always the same for the same supervisor."""
    rng = random.Random(f"furniture {rows.me.number}")
    others = [person for person in PEOPLE if person is not rows.me]
    _contacts(rows, rng, others)
    _mails(rows, rng, others)
    _texts(rows, rng, others)
    _notes(rows, rng)
    _payments(rows, rng, others)
    _files(rows, rng)
    _projects(rows, rng)
    rows.alarm("06:45", "Get up", ["monday", "tuesday", "wednesday", "thursday", "friday"])
    rows.alarm("21:30", "Water the plants", ["sunday"])


def _contacts(rows: Rows, rng: random.Random, others: list[Person]) -> None:
    for number, person in enumerate(others):
        ties = [rng.choice(_TIES)]
        if person.name == ACCOUNTANTS[rows.me.number - 1]:
            ties = ["accountant"]
        if person.name == COACHES[rows.me.number - 1]:
            ties = ["coach"]
        rows.contact(person, ties, _address(rng), _address(rng), moment(1, 3 + number, 10))


def _address(rng: random.Random) -> str:
    return f"{rng.randrange(1, 140)} {rng.choice(_STREETS)}, Alderby, {rng.randrange(10_000, 99_999)}"


def _mails(rows: Rows, rng: random.Random, others: list[Person]) -> None:
    for number, subject in enumerate(rng.sample(SUBJECTS, _MAILS)):
        sender = rng.choice(others)
        body = letter(rng, sender.first_name, rows.me.first_name)
        rows.mail(sender, rows.me, subject, body, moment(3, 2 + number, 8, number))


def _texts(rows: Rows, rng: random.Random, others: list[Person]) -> None:
    for number in range(_TEXTS):
        other = rng.choice(others)
        pair = (other, rows.me) if rng.random() < 0.6 else (rows.me, other)
        rows.text(*pair, paragraph(rng, 1), moment(4, 1 + number, 18, number))


def _notes(rows: Rows, rng: random.Random) -> None:
    for number, title in enumerate(rng.sample(TITLES, len(TITLES))):
        rows.note(title, paragraph(rng, 4), [rng.choice(("home", "ideas", "lists"))], moment(2, 1 + number, 20))


def _payments(rows: Rows, rng: random.Random, others: list[Person]) -> None:
    for number in range(_PAYMENTS):
        other = rng.choice(others)
        pair = (rows.me, other) if rng.random() < 0.5 else (other, rows.me)
        amount = rng.randrange(300, 6_000) / 100
        rows.payment(*pair, amount, rng.choice(PAYMENTS), moment(1, 2 + number, 13, number))


def _files(rows: Rows, rng: random.Random) -> None:
    rows.models.file_system.Directory.create_save(path="/", user_id=rows.me.number)
    rows.models.file_system.Directory.create_save(path="/home/", user_id=rows.me.number)
    for folder in ("", "letters/", "photos/", "garden/"):
        rows.folder(folder)
    for number, subject in enumerate(rng.sample(SUBJECTS, 5)):
        name = subject.lower().replace(" ", "-").replace(",", "")
        rows.file(f"letters/{name}.txt", paragraph(rng, 5), moment(2, 3 + number))


def _projects(rows: Rows, rng: random.Random) -> None:
    for number, name in enumerate(("Flat", "Reading", "Errands")):
        project = rows.project(name, paragraph(rng, 1), moment(1, 20 + number))
        for order, title in enumerate(rng.sample(TITLES, 4)):
            rows.task(project, title, paragraph(rng, 1), order, moment(6, 1 + order))
