"""When the sessions of a conversation are held and how large they are: any session's, without the ones before it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta

from flexmem.benchmarks.synthetic.draw import Draw

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_FIRST_DAY = date(2019, 1, 1)
_FIRST_DAYS = 1_500  # conversations begin somewhere in these days
_LONGEST_GAP = 7
_SPAN_DAYS = 1_500  # a long history has denser sessions rather than more years, until there is one a day
_SIZE_JITTER = 0.6  # sessions have 0.4 to 1.6 times the mean size
_AGO = (
    (0, "today"),
    (0, "this morning"),
    (1, "yesterday"),
    (2, "two days ago"),
    (3, "three days ago"),
    (4, "four days ago"),
    (5, "five days ago"),
    (7, "a week ago"),
    (10, "ten days ago"),
    (14, "two weeks ago"),
    (21, "three weeks ago"),
)


@dataclass(frozen=True, slots=True)
class Timeline:
    """``sessions`` sessions of ``tokens`` tokens in all, for the stream of choices named ``key``."""

    key: str
    tokens: int
    sessions: int

    def size(self, session: int) -> int:
        """Tokens that a session should have; they add up to ``tokens`` exactly."""
        return self._boundary(session + 1) - self._boundary(session)

    def _boundary(self, session: int) -> int:
        if session in (0, self.sessions):
            return self.tokens * session // self.sessions
        jitter = (Draw(self.key, "boundary", session).random() - 0.5) * _SIZE_JITTER
        return int((session + jitter) * self.tokens / self.sessions)

    def held_at(self, session: int) -> datetime:
        """Strictly later, by a day at least, than the session before; ``session`` may be one past the last."""
        start = _FIRST_DAY + timedelta(Draw(self.key, "start").below(_FIRST_DAYS))
        gap = max(1, min(_LONGEST_GAP, _SPAN_DAYS // self.sessions))
        draw = Draw(self.key, "held", session)
        day = start + timedelta(session * gap + draw.below(gap))
        return datetime(day.year, day.month, day.day, draw.between(8, 21), draw.below(60))


def moment_label(moment: datetime) -> str:
    """``2023/05/20 (Sat) 02:21``, in English whatever the locale."""
    weekday = _WEEKDAYS[moment.weekday()][:3]
    return f"{moment:%Y/%m/%d} ({weekday}) {moment:%H:%M}"


def day_label(day: date) -> str:
    """``9 March 2024``."""
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def recent_day(draw: Draw, today: date) -> tuple[str, date]:
    """A phrase said on ``today`` and the day that it means. "This past Saturday" is the latest one before today."""
    if draw.chance(0.35):
        back = draw.between(1, 6)
        day = today - timedelta(back)
        return f"this past {_WEEKDAYS[day.weekday()]}", day
    back, phrase = draw.pick(_AGO)
    return phrase, today - timedelta(back)
