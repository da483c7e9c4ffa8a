"""Dates as LongMemEval writes them: ``2023/05/20 (Sat) 02:21``."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime

from flexmem.benchmarks.protocol import DataError

_DATE = re.compile(r"(\d{4})/(\d{2})/(\d{2}) \(\w{3}\) (\d{2}):(\d{2})")


def parse_date(text: str, place: str, field: str) -> datetime:
    """The moment, of no zone; the weekday is not looked at.

    Raises:
        DataError: written otherwise, or no such day.
    """
    found = _DATE.fullmatch(text)
    with suppress(ValueError):  # no such day
        if found:
            return datetime(*map(int, found.groups()))  # type: ignore[arg-type]  # year, month, day, hour, minute
    raise DataError(f"{place}: {field}: {text!r} is no date such as '2023/05/20 (Sat) 02:21'")
