"""Logs that other programs have written (chats, agents' trajectories), read as histories, and what a memory would have
shown in them.
"""

from flexmem.logs.loading import load_log
from flexmem.logs.log import FORMATS, Log, LogFormat
from flexmem.logs.problems import LogError
from flexmem.logs.showing import show_answer, show_next_call
from flexmem.logs.shown import ShowingError, Shown, Tools

__all__ = [
    "FORMATS",
    "Log",
    "LogError",
    "LogFormat",
    "ShowingError",
    "Shown",
    "Tools",
    "load_log",
    "show_answer",
    "show_next_call",
]
