"""For tests' imports."""

from flexmem.contract.cases import *  # noqa: F403
from flexmem.contract.cases import Case, WordEmbedder, cases, conversations, services, trajectories  # noqa: F401
from flexmem.contract.checks import *  # noqa: F403
from flexmem.contract.checks import CHECKS, run, write  # noqa: F401
from flexmem.contract.checks import read as _read
from flexmem.memory.protocol import MethodInfo


class _Any:
    info = MethodInfo(name="x", family="x", summary="x", card=None)  # type: ignore[arg-type]


async def read(build, case):  # type: ignore[no-untyped-def]
    return await _read(_Any(), build, case)
