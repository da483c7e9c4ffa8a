"""The base of what whoever runs flexmem can mend."""

from __future__ import annotations


class FlexmemError(Exception):
    """A file, a folder, a configuration, an endpoint or data can't be used, or a method's contract was not kept. The
    message says what happened, where, and what to do about it; commands show it without a traceback and end with 2.

    Exceptions that are no `FlexmemError` are either turned into one, or into a recorded failure, before they reach a
    caller, or are a defect whose traceback is wanted.
    """
