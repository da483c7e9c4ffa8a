"""A coach's mail tells new times in prose; alarms go off some time before them, and the old one is switched off."""

from __future__ import annotations

import random
from typing import Any

from world.furniture import COACHES
from world.people import BY_NAME
from world.prose import paragraph
from world.rows import Rows, moment
from world.scenario import Facts, Scenario, fill

_MAIL = (
    "the hall is being repainted, so nothing stays as it was. From June on we train on <<day_1>> at <<time_1>>, sharp, "
    "and once more on <<day_2>>, where the small room is free from <<time_2>>. The slot on <<old_day>> at <<old_time>> "
    "is gone; the chess club has it now."
)

_SOLUTION = r"""
profile = apis.supervisor.show_profile()
passwords = {row["account_name"]: row["password"] for row in apis.supervisor.show_account_passwords()}
gmail_token = apis.gmail.login(username=profile["email"], password=passwords["gmail"])["access_token"]
threads = []
page = 0
while True:
    got = apis.gmail.show_inbox_threads(access_token=gmail_token, page_index=page, page_limit=20)
    if not got:
        break
    threads += got
    page += 1
thread_id = [row["email_thread_id"] for row in threads if row["subject"] == "<<subject>>"][0]
thread = apis.gmail.show_thread(email_thread_id=thread_id, access_token=gmail_token)
letter = thread["emails"][0]["body"]
first_day = read("the first day of training from June on", letter, r"we train on (\w+) at")
first_time = read("when the first training begins", letter, r"we train on \w+ at (\d\d:\d\d), sharp")
second_day = read("the second day of training", letter, r"once more on (\w+), where")
second_time = read("when the second training begins", letter, r"the small room is free from (\d\d:\d\d)\.")
trainings = [{"day": first_day, "time": first_time}, {"day": second_day, "time": second_time}]
phone_token = apis.phone.login(username=profile["phone_number"], password=passwords["phone"])["access_token"]
alarms = []
page = 0
while True:
    got = apis.phone.show_alarms(access_token=phone_token, page_index=page, page_limit=20)
    if not got:
        break
    alarms += got
    page += 1
old_alarm_id = [row["alarm_id"] for row in alarms if row["label"] == "Training"][0]
switched_off = apis.phone.update_alarm(alarm_id=old_alarm_id, enabled=False, access_token=phone_token)
for training in trainings:
    minutes = int(training["time"][:2]) * 60 + int(training["time"][3:]) - <<lead>>
    apis.phone.create_alarm(
        time=format(minutes // 60, "02d") + ":" + format(minutes % 60, "02d"),
        repeat_days=[training["day"].lower()],
        label="Training",
        access_token=phone_token,
    )
apis.supervisor.complete_task()
"""

_EVALUATION = """
with test("assert that only alarms have changed."):
    test.case(models.changed_model_names(), "==", {"phone.Alarm"})
with test("assert that the old alarm is off and otherwise as it was."):
    added, updated, removed = models.changed_records("phone.Alarm")
    test.case([(record.label, record.time) for record in updated], "==", [("Training", private_data.old_time)])
    changed = models.changed_field_names("phone.Alarm", updated[0].id)
    test.case(changed - {"record_hash"}, "==", {"enabled"})
    test.case(len(removed), "==", 0)
with test("assert that there is an alarm for each training, early enough."):
    added, updated, removed = models.changed_records("phone.Alarm")
    made = sorted([record.time, list(record.repeat_days)] for record in added)
    test.case(made, "==", sorted([time, [day]] for time, day in private_data.alarms))
with test("assert that the new alarms are on and labelled."):
    added, updated, removed = models.changed_records("phone.Alarm")
    test.case({(record.enabled, record.label) for record in added}, "==", {(True, "Training")})
"""


def _earlier(time: str, minutes: int) -> str:
    """A time of the day some minutes before another."""
    at = int(time[:2]) * 60 + int(time[3:]) - minutes
    return f"{at // 60:02d}:{at % 60:02d}"


def _arrange(rows: Rows, facts: Facts) -> None:
    rng = random.Random(f"alarms {rows.me.number}")
    coach = BY_NAME[facts["coach"]]
    body = (
        f"Dear {rows.me.first_name},\n\n{fill(_MAIL, facts)}\n\n{paragraph(rng, 2)}\n\nUntil then,\n{coach.first_name}"
    )
    rows.mail(coach, rows.me, facts["subject"], body, moment(5, 12, 10))
    rows.alarm(_earlier(facts["old_time"], facts["lead"]), "Training", [facts["old_day"].lower()])


def _private(facts: Facts) -> dict[str, Any]:
    new = [[_earlier(facts[f"time_{n}"], facts["lead"]), facts[f"day_{n}"].lower()] for n in (1, 2)]
    return {"alarms": new, "old_time": _earlier(facts["old_time"], facts["lead"])}


def _variant(number: int, subject: str, lead: int, times: str) -> dict[str, Any]:
    """``times``: day and time of the two new trainings and of the old one."""
    names = ("day_1", "time_1", "day_2", "time_2", "old_day", "old_time")
    facts = dict(zip(names, times.split(), strict=True))
    return {**facts, "coach": COACHES[number - 1], "subject": subject, "lead": lead}


ALARMS = Scenario(
    name="own8c9d",
    split="test_normal",
    difficulty=2,
    apps=("gmail", "phone"),
    variants=(
        _variant(1, "Hall closed, new times", 50, "Tuesday 18:15 Saturday 10:40 Thursday 19:00"),
        _variant(2, "Training from June", 35, "Monday 17:20 Friday 18:45 Wednesday 20:00"),
        _variant(3, "When we meet now", 65, "Wednesday 19:10 Sunday 09:30 Tuesday 18:30"),
    ),
    arrange=_arrange,
    instruction="""
        My coach, <<coach>>, has mailed me when we train from June on. Switch off the alarm on my phone for the training
        so far, which is labelled "Training", but do not delete it. Set a new alarm with the same label for each day on
        which we train now, repeated on that day, <<lead>> minutes before the training begins.
    """,
    solution=_SOLUTION,
    slip=('format(minutes // 60, "02d") + ":" + format(minutes % 60, "02d")', 'training["time"]'),
    evaluation=_EVALUATION,
    private=_private,
)
