"""The client against a server that misbehaves on request: bounds, deadlines, and whose fault a failure is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from flexmem.benchmarks.appworld.client import KEEP_BYTES, EnvironmentClient, NoSuchTaskError
from flexmem.benchmarks.appworld.connection import Listener
from flexmem.sandbox.ending import Ending, Reason
from flexmem.sandbox.errors import (
    SandboxBrokenError,
    SandboxDeadlineError,
    SandboxError,
    SandboxMemoryError,
)

LONG_S = 60.0
OK = b'{"ok": true, "body": 0}'


class FakeSandbox:
    """Ended as it is told to."""

    name = "box"

    def __init__(self, reason: Reason = "running") -> None:
        self.reason: Reason = reason

    async def ending(self) -> Ending:
        return Ending(self.reason, None, "last words")

    async def wait(self) -> None:
        await asyncio.sleep(LONG_S)

    async def kill(self) -> None:
        pass


def framed(line: bytes, body: bytes = b"") -> bytes:
    return len(line).to_bytes(4, "big") + line + body


def answer(body: bytes = b"", **fields: Any) -> bytes:
    return framed(json.dumps({"ok": True, **fields, "body": len(body)}).encode(), body)


def talk(
    folder: Path,
    body: Callable[[EnvironmentClient], Awaitable[None]],
    *answers: bytes,
    reason: Reason = "running",
    stay: bool = False,
) -> list[dict[str, Any]]:
    """Run ``body`` with a client whose server gives these answers, one a request, and hangs up (or stays silent). Gives
    the requests.
    """
    asked: list[dict[str, Any]] = []

    async def serve(path: Path) -> None:
        reader, writer = await asyncio.open_unix_connection(path)
        for each in answers:
            fields = json.loads(await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big")))
            asked.append({**fields, "body": (await reader.readexactly(fields["body"])).decode()})
            writer.write(each)
            await writer.drain()
        if stay:
            await reader.read()
        writer.close()

    async def run() -> None:
        listener = await Listener.open(folder / "s")
        server = asyncio.create_task(serve(folder / "s"))
        client = EnvironmentClient(await listener.connection(), FakeSandbox(reason))
        await body(client)
        client.close()
        await server

    asyncio.run(run())
    return asked


def test_requests_and_answers_arrive_as_they_were_sent(tmp_path: Path) -> None:
    async def body(client: EnvironmentClient) -> None:
        assert await client.begin("t_1", "x", timeout_s=7, deadline_s=LONG_S) == {"task_id": "t_1"}
        assert await client.execute("print('ä')", LONG_S) == "ä\n"
        assert await client.completed()
        assert not await client.completed()
        assert await client.outputs(10) == b"tar"
        assert client.doubtful is None

    asked = talk(
        tmp_path,
        body,
        answer(task={"task_id": "t_1"}),
        answer("ä\n".encode()),
        answer(completed=True),
        answer(),
        answer(b"tar"),
    )
    assert asked[0] == {"op": "begin", "task_id": "t_1", "experiment": "x", "timeout_s": 7, "body": ""}
    assert asked[1] == {"op": "execute", "body": "print('ä')"}
    assert [each["op"] for each in asked[2:]] == ["completed", "completed", "outputs"]


def test_of_a_huge_output_beginning_and_end_are_held(tmp_path: Path) -> None:
    size = 20_000_000

    async def body(client: EnvironmentClient) -> None:
        text = await client.execute("…", LONG_S)
        half = KEEP_BYTES // 2
        assert text.startswith("a" + "b" * (half - 1) + "\n[… ")
        assert text.endswith("…]\n" + "b" * (half - 1) + "z")
        assert f"[… {size - KEEP_BYTES:,} bytes left out …]" in text
        assert await client.execute("…", LONG_S) == "next"  # nothing of it is left on the way

    talk(tmp_path, body, answer(b"a" + b"b" * (size - 2) + b"z"), answer(b"next"))


def test_a_cut_through_a_character_leaves_no_rubble(tmp_path: Path) -> None:
    async def body(client: EnvironmentClient) -> None:
        text = await client.execute("…", LONG_S)
        assert set(text) <= set("€[… 0123456789,bytesleftou]\n")

    talk(tmp_path, body, answer("€".encode() * 500_000))


def test_outputs_that_are_too_large_are_the_episodes_fault(tmp_path: Path) -> None:
    async def body(client: EnvironmentClient) -> None:
        with pytest.raises(SandboxBrokenError, match="more than 10 bytes"):
            await client.outputs(10)

    talk(tmp_path, body, answer(b"x" * 11))


def test_a_request_that_passes_its_deadline_is_the_last_one(tmp_path: Path) -> None:
    async def body(client: EnvironmentClient) -> None:
        with pytest.raises(SandboxDeadlineError, match=r"'execute' did not end within 0\.05 s"):
            await client.execute("while True: pass", 0.05)
        with pytest.raises(SandboxError, match="can't be asked any more"):
            await client.completed()

    talk(tmp_path, body, stay=True)


def test_a_request_that_is_cancelled_is_the_last_one(tmp_path: Path) -> None:
    async def body(client: EnvironmentClient) -> None:
        task = asyncio.create_task(client.execute("while True: pass", LONG_S))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(SandboxError, match="never read"):
            await client.ping()

    talk(tmp_path, body, stay=True)


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("memory", SandboxMemoryError),
        ("exit", SandboxBrokenError),
        ("running", SandboxBrokenError),  # it hung up, or talks nonsense, and goes on
        ("killed", SandboxError),
        ("lifetime", SandboxError),
        ("unknown", SandboxError),
    ],
)
def test_a_lost_connection_is_blamed_on_how_the_sandbox_ended(
    tmp_path: Path, reason: Reason, kind: type[Exception]
) -> None:
    async def body(client: EnvironmentClient) -> None:
        with pytest.raises(kind, match=r"box: it closed the connection during 'execute'[\s\S]*last words") as raised:
            await client.execute("…", LONG_S)
        assert type(raised.value) is kind

    talk(tmp_path, body, b"", reason=reason)


def test_between_episodes_a_lost_server_is_the_machines_fault(tmp_path: Path) -> None:
    async def body(client: EnvironmentClient) -> None:
        with pytest.raises(SandboxError, match="closed the connection"):
            await client.ping()

    talk(tmp_path, body, b"", reason="exit")


@pytest.mark.parametrize(
    "nonsense",
    [
        b"\xff\xff\xff\xff",
        framed(b"{"),
        framed(b"[]"),
        framed(b'{"ok": 1, "body": 0}'),
        framed(b'{"ok": true, "body": -1}'),
        framed(b'{"ok": true, "body": "5"}'),
        framed(b'{"ok": true}'),
        framed(b'{"ok": true, "body": 10}', b"short"),
    ],
)
def test_nonsense_is_no_answer(tmp_path: Path, nonsense: bytes) -> None:
    async def body(client: EnvironmentClient) -> None:
        with pytest.raises(SandboxBrokenError):
            await client.completed()
        assert client.doubtful is not None

    talk(tmp_path, body, nonsense)


def test_a_task_that_is_not_there_is_a_defect_of_the_data(tmp_path: Path) -> None:
    async def body(client: EnvironmentClient) -> None:
        with pytest.raises(NoSuchTaskError, match="no task 'x'"):
            await client.begin("x", "e", timeout_s=1, deadline_s=LONG_S)
        await client.end()

    talk(
        tmp_path,
        body,
        framed(b'{"ok": false, "error": "no_such_task", "message": "no task \'x\'", "body": 0}'),
        answer(),
    )


def test_a_failure_inside_is_told_with_its_traceback(tmp_path: Path) -> None:
    async def body(client: EnvironmentClient) -> None:
        with pytest.raises(SandboxBrokenError, match="No space left"):
            await client.execute("…", LONG_S)

    talk(tmp_path, body, framed(b'{"ok": false, "error": "failed", "message": "No space left", "body": 0}'))


def test_a_socket_path_that_is_too_long_is_told(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="TMPDIR"):
        asyncio.run(Listener.open(tmp_path / ("x" * 108)))
