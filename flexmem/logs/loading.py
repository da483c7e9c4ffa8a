"""Reading a log, whatever its format."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from flexmem.logs.chat import load_chat
from flexmem.logs.files import LogFile, read_file
from flexmem.logs.inspect_logs import load_inspect
from flexmem.logs.log import Log, LogFormat
from flexmem.logs.problems import LogError, expected
from flexmem.logs.runs import load_episode
from flexmem.logs.swe_agent import load_swe_agent

_KNOWN = (
    "chat messages (a list, an object with 'messages', or one message a line), a SWE-agent trajectory (an object with "
    "'trajectory') or an Inspect log (an object with 'eval' and 'samples')"
)


def load_log(path: Path, format: LogFormat | None = None, sample: str | None = None) -> Log:  # noqa: A002 - its name
    """Read a log. ``format`` None: told by the file's content. ``sample`` chooses among those of an Inspect log, by id
    or ``id/epoch``, and among the episodes of a run's folder, by key.

    Raises:
        LogError: the file is not of that format, or of none that is known; or it is damaged, with the place.
        OSError: it can't be read.
    """
    if path.is_dir() or format == "run":
        return load_episode(path, sample)
    return log_of(read_file(path), format, sample)


def log_of(file: LogFile, format: LogFormat | None = None, sample: str | None = None) -> Log:  # noqa: A002 - its name
    """As `load_log`, of a file that is read already."""
    told = format or _format(file)
    try:
        if told == "inspect":
            return load_inspect(file, sample)
        if sample is not None:
            raise LogError(f"{file.source}: only an Inspect log has samples; this is one history whole ({told})")
        return load_swe_agent(file) if told == "swe-agent" else load_chat(file)
    except RecursionError as error:
        raise LogError(f"{file.source}: its JSON is nested too deeply") from error


def _format(file: LogFile) -> LogFormat:
    value = file.value
    if file.lines is not None or isinstance(value, list):
        return "chat"
    if isinstance(value, Mapping):
        if "trajectory" in value:
            return "swe-agent"
        if "eval" in value:
            return "inspect"
        if "messages" in value or "role" in value:
            return "chat"
    raise expected(file.source, _KNOWN, value)
