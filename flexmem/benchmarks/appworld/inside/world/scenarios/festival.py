"""Comments on tasks tell what is finished and who has taken over what; those people get mails."""

from __future__ import annotations

import random
from typing import Any

from world.people import BY_NAME
from world.prose import paragraph
from world.rows import Rows, moment
from world.scenario import Facts, Scenario, fill

_TAKEN = (
    "I asked around at the house meeting on Monday, and after some silence <<who>> takes this over. {0}",
    "{0} As I have no time for it this month: from now on <<who>> looks after it, which was a kind offer.",
    "Handed over, with all the papers, to <<who>>. {0}",
    "{0} We drew lots in the yard, and the lot fell on <<who>>.",
)
_FINISHED = (
    "{0} It is finished, only the tick in this list was forgotten.",
    "It is finished since last week, even the bill is there. {0}",
    "{0} By the way: It is finished, I saw it standing in the hall.",
)
_OPEN = "{0} I doubt that this will be finished by the end of the month; nobody has it in hand."

_SOLUTION = r"""
profile = apis.supervisor.show_profile()
passwords = {row["account_name"]: row["password"] for row in apis.supervisor.show_account_passwords()}
todoist_token = apis.todoist.login(username=profile["email"], password=passwords["todoist"])["access_token"]
projects = []
page = 0
while True:
    got = apis.todoist.show_projects(access_token=todoist_token, page_index=page, page_limit=20)
    if not got:
        break
    projects += got
    page += 1
project_id = [row["project_id"] for row in projects if row["name"] == "<<project>>"][0]
listing = apis.todoist.show_tasks(project_id=project_id, is_completed=False, access_token=todoist_token)
open_tasks = listing["no_section_tasks"]
remarks = []
for task in open_tasks:
    comments = apis.todoist.show_task_comments(task_id=task["task_id"], access_token=todoist_token)
    remarks = remarks + [comments[-1]["content"]]
by_title = {task["title"]: remark for task, remark in zip(open_tasks, remarks)}
due_dates = {task["title"]: task["due_date"][:10] for task in open_tasks}
finished = [task for task in open_tasks if "It is finished" in by_title[task["title"]]]
first_helper = read("who takes over <<t1>>", by_title["<<t1>>"], r"after some silence (\w+ \w+) takes this over")
second_helper = read("who looks after <<t2>>", by_title["<<t2>>"], r"from now on (\w+ \w+) looks after it")
third_helper = read("to whom <<t3>> was handed over", by_title["<<t3>>"], r"with all the papers, to (\w+ \w+)\.")
fourth_helper = read("on whom the lot fell for <<t4>>", by_title["<<t4>>"], r"the lot fell on (\w+ \w+)\.")
errands = [
    {"title": "<<t1>>", "name": first_helper},
    {"title": "<<t2>>", "name": second_helper},
    {"title": "<<t3>>", "name": third_helper},
    {"title": "<<t4>>", "name": fourth_helper},
]
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
gmail_token = apis.gmail.login(username=profile["email"], password=passwords["gmail"])["access_token"]
for errand in errands:
    apis.gmail.send_email(
        email_addresses=[emails[errand["name"]]],
        subject=errand["title"],
        body=due_dates[errand["title"]],
        access_token=gmail_token,
    )
for task in finished:
    apis.todoist.update_task(task_id=task["task_id"], is_completed=True, access_token=todoist_token)
apis.supervisor.complete_task()
"""

_EVALUATION = """
with test("assert that nothing but mails and tasks has changed."):
    expected = {"gmail.Email", "gmail.GlobalEmailThread", "gmail.UserEmailThread", "todoist.Task"}
    test.case(models.changed_model_names(), "==", expected)
with test("assert that exactly the finished tasks are ticked off."):
    added, updated, removed = models.changed_records("todoist.Task")
    test.case(sorted(record.title for record in updated), "==", sorted(private_data.finished))
    test.case({record.is_completed for record in updated}, "==", {True})
    test.case(len(added) + len(removed), "==", 0)
with test("assert that every helper has a mail of their own about their task."):
    added, updated, removed = models.changed_records("gmail.Email")
    sent = sorted([list(record.recipient_ids), record.subject] for record in added)
    expected = sorted([[number], title] for number, title, due in private_data.errands)
    test.case(sent, "==", expected)
with test("assert that the mails tell the due dates."):
    added, updated, removed = models.changed_records("gmail.Email")
    told = {record.subject: record.body.strip() for record in added}
    test.case(told, "==", {title: due for number, title, due in private_data.errands})
"""


def _due(place: int) -> tuple[int, int]:
    """Month and day on which the task at a place of the list is due."""
    return 6, 3 + 3 * place


def _arrange(rows: Rows, facts: Facts) -> None:
    rng = random.Random(f"festival {rows.me.number}")
    project = rows.project(facts["project"], paragraph(rng, 2), moment(2, 14))
    for place, title in enumerate(facts["order"]):
        done = title in facts["done_before"]
        task = rows.task(project, title, paragraph(rng, 1), place, moment(*_due(place)), completed=done)
        rows.remark(task, paragraph(rng, 1), moment(4, 2 + place))
        if title in facts["taken"]:
            number = facts["taken"].index(title)
            text = fill(_TAKEN[number], {"who": facts["helpers"][number]})
        elif title in facts["finished"]:
            text = _FINISHED[facts["finished"].index(title)]
        else:
            text = _OPEN
        rows.remark(task, text.format(paragraph(rng, 1)), moment(5, 2 + place))


def _private(facts: Facts) -> dict[str, Any]:
    errands = []
    for title, helper in zip(facts["taken"], facts["helpers"], strict=True):
        month, day = _due(facts["order"].index(title))
        errands.append([BY_NAME[helper].number, title, f"2023-{month:02d}-{day:02d}"])
    return {"errands": errands, "finished": list(facts["finished"])}


def _variant(project: str, titles: str, helpers: tuple[str, ...]) -> dict[str, Any]:
    """``titles``: four that were taken over, three that are finished, one that is open, two that were done before."""
    names = [title.strip() for title in titles.split("/")]
    order = list(names)
    random.Random(project).shuffle(order)
    return {
        "project": project,
        "order": order,
        "taken": names[:4],
        "finished": names[4:7],
        "done_before": names[8:],
        "helpers": helpers,
        **{f"t{number}": title for number, title in enumerate(names[:4], 1)},
    }


FESTIVAL = Scenario(
    name="own4a5b",
    split="test_challenge",
    difficulty=3,
    apps=("gmail", "phone", "todoist"),
    variants=(
        _variant(
            "Street festival",
            "Permit for the street / Benches from the school / Lamps over the road / Cake list / Banner / Stage floor /"
            " Posters / Rain plan / Date with the band / Letter to the neighbours",
            ("Ines Rook", "Jonas Hale", "Wanda Pike", "Tomas Brill"),
        ),
        _variant(
            "Cellar cinema",
            "Projector repair / Chairs for forty / Licence for three films / Door money / Curtain / Sound cable /"
            " Programme sheet / Heating / Choice of films / Poster at the station",
            ("Xenia Dorn", "Rafi Gorman", "Cleo Marsh", "Quentin Pryce"),
        ),
        _variant(
            "School garden",
            "Water butt / Tools for small hands / Fence on the east side / Seed swap / Compost corner / Path of bricks"
            " / Name plates / Pond / Talk with the head teacher / Plan on paper",
            ("Theo Larkin", "Una Morrow", "Dov Linden", "Petra Ansel"),
        ),
    ),
    arrange=_arrange,
    instruction="""
        The newest comments on the open tasks of my Todoist project "<<project>>" say how things stand. Tick off those
        tasks that are finished by what their comment says. Whoever has taken over a task gets a mail of their own about
        it: the task's title is its subject, and its text is only the day on which the task is due, as YYYY-MM-DD. Their
        addresses are in my phone's contacts. Leave everything else as it is.
    """,
    solution=_SOLUTION,
    slip=('if "It is finished" in by_title', 'if "finished" in by_title'),
    evaluation=_EVALUATION,
    private=_private,
)
