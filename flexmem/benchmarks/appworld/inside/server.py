"""AppWorld's environment behind a Unix socket. Runs under AppWorld's own interpreter, in a container or as a child.

AppWorld keeps one world a process and alters it: clocks stand still, functions of ``os`` are taken away while an
agent's code runs, and that code runs in the same process and can alter anything. So this process imports and warms
AppWorld once and serves nothing itself; every episode is a fork of it, which leaves memory, clocks and modules as they
were.

It connects to a socket on which its host listens, so that the socket's folder needs not be writable here; nothing of
what an episode writes lies on the host's disk. When the host is gone, it ends.

A message is four bytes of length, so many of JSON (``{"op": …, "body": n}`` of the host, ``{"ok": …, "body": n}`` of
ours), and n bytes of body. After ``begin`` the fork reads the socket, until ``end``. The operations of a fork:

    begin     task_id, experiment           what `_task` says of the task
    execute   body: code                    body: what AppWorld prints for it
    completed                               {"completed": bool}
    outputs                                 body: a gzipped tar of the task's folder
    end                                     the fork ends, and the next ``begin`` may come

Exit codes: 0 asked to end, or the host is gone; `EPISODE_BROKE` the fork ended in another way; `LEFT_BEHIND` an episode
left processes.
"""

from __future__ import annotations

import argparse
import ctypes
import io
import json
import os
import shutil
import signal
import socket
import sys
import tarfile
import time
import traceback

EPISODE_BROKE = 70
LEFT_BEHIND = 71

_exit = os._exit  # a fork that AppWorld left without functions of `os` must still be able to end
_join = os.path.join

_LINE = 1 << 24  # bytes of a request's line at most
_WARM_UP = "warm-up"
_PR_SET_DUMPABLE = 4
_LOOKS, _LOOK_S = 20, 0.05


class Gone(Exception):
    """The host has closed the connection."""


class Channel:
    """Messages over one connection. Nothing is read ahead: a fork goes on exactly where its parent stopped."""

    def __init__(self, path):
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(path)

    def receive(self):
        """The next request: its fields and its body."""
        size = int.from_bytes(self._exactly(4), "big")
        if size > _LINE:
            raise ValueError(f"a request of {size} bytes")
        fields = json.loads(self._exactly(size).decode("utf-8"))
        return fields, self._exactly(fields.get("body", 0))

    def send(self, fields, body=b""):
        """Send an answer."""
        line = json.dumps(dict(fields, body=len(body))).encode("utf-8")
        self._socket.sendall(len(line).to_bytes(4, "big") + line)
        if body:
            self._socket.sendall(body)

    def _exactly(self, size):
        parts = []
        while size:
            part = self._socket.recv(min(size, 1 << 20))
            if not part:
                raise Gone
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


class Episode:
    """One task's world; only ever made in a fork."""

    def __init__(self, root):
        self._root = root
        self._world = None

    def begin(self, fields, body):
        """Load the task's world."""
        from appworld import AppWorld

        task_id = fields["task_id"]
        if not os.path.isfile(_join(self._root, "data", "tasks", task_id, "specs.json")):
            return {"ok": False, "error": "no_such_task", "message": f"no task {task_id!r} in the data"}, b""
        self._world = AppWorld(
            task_id=task_id,
            experiment_name=fields["experiment"],
            load_ground_truth=False,
            timeout_seconds=fields["timeout_s"],
        )
        return {"ok": True, "task": _task(self._world.task)}, b""

    def execute(self, fields, body):
        """Run an agent's code."""
        return {"ok": True}, self._world.execute(body.decode("utf-8")).encode("utf-8", errors="replace")

    def completed(self, fields, body):
        """Whether the agent has said that it is done."""
        return {"ok": True, "completed": bool(self._world.task_completed())}, b""

    def outputs(self, fields, body):
        """The task's folder as AppWorld saves it after every execution."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as tar:
            tar.add(self._world.output_directory, arcname=".")
        return {"ok": True}, packed.getvalue()


def _task(task):
    supervisor = task.supervisor
    return {
        "task_id": task.id,
        "instruction": task.instruction,
        "supervisor": {name: supervisor[name] for name in ("first_name", "last_name", "email", "phone_number")},
        "datetime": task.datetime.isoformat(),
        "app_descriptions": dict(task.app_descriptions),
    }


def serve_episode(channel, root, fields):
    """Answer in a fork until the episode ends."""
    episode = Episode(root)
    body = b""
    while True:
        operation = fields["op"]
        if operation == "end":
            return
        handlers = {
            "begin": episode.begin,
            "execute": episode.execute,
            "completed": episode.completed,
            "outputs": episode.outputs,
        }
        try:
            answer, out = handlers[operation](fields, body)
        except Exception:  # noqa: BLE001 - told to the host
            # AppWorld answers an agent's errors itself; what gets here broke the world (a full disk, a clock that it
            # swallowed), and the host ends the episode.
            answer, out = {"ok": False, "error": "failed", "message": traceback.format_exc()[-4000:]}, b""
        channel.send(answer, out)
        fields, body = channel.receive()


def run_episode(channel, root, fields):
    """Serve one episode in a fork, and wait for its end."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            serve_episode(channel, root, fields)
            code = 0
        except Gone:
            code = 0
        except BaseException:  # noqa: BLE001 - told by the exit code
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            _exit(code)
    _, status = os.waitpid(pid, 0)
    if status != 0:
        how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"status {status >> 8}"
        print("the episode's process ended with", how, file=sys.stderr, flush=True)
        _exit(EPISODE_BROKE)


def strangers():
    """Processes that an episode left in this container (outside of one nothing can be told of them)."""
    known = {os.getpid(), os.getppid(), 1}
    found = []
    for _ in range(_LOOKS):
        found = sorted({int(name) for name in os.listdir("/proc") if name.isdecimal()} - known)
        if not found:
            break
        time.sleep(_LOOK_S)  # what is ending needs a moment until it is reaped
    return found


def clean(root, contained):
    """Remove what an episode wrote, so that the next one finds what the first one found."""
    folders = [_join(root, "experiments", "outputs")] + (["/tmp", "/dev/shm"] if contained else [])
    for folder in folders:
        for name in os.listdir(folder):
            path = _join(folder, name)
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            else:
                os.unlink(path)


def lock_memory():
    """Let no process of the same user, such as an episode, read or write this one's memory."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def warm_up(root):
    """Import and build what AppWorld makes at its first task: in this process, so that forks share it."""
    from appworld import AppWorld, update_root

    update_root(root)
    tasks = sorted(os.listdir(_join(root, "data", "tasks")))
    if not tasks:
        raise SystemExit(f"{root}/data/tasks holds no task")
    world = AppWorld(task_id=tasks[0], experiment_name=_WARM_UP, load_ground_truth=False)
    world.execute("print(apis.supervisor.show_profile())")
    world.close()
    AppWorld.close_all()


def main():
    """Warm up, connect, say so, and serve one episode after the other."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--socket", required=True)
    parser.add_argument("--root", required=True)
    parser.add_argument("--contained", action="store_true", help="this is a container of its own")
    options = parser.parse_args()
    os.makedirs(_join(options.root, "experiments", "outputs"), exist_ok=True)
    signal.signal(signal.SIGTERM, lambda number, frame: _exit(0))
    lock_memory()
    warm_up(options.root)
    clean(options.root, options.contained)
    channel = Channel(options.socket)
    channel.send({"ok": True, "ready": True})
    while True:
        try:
            fields, _ = channel.receive()
        except Gone:
            return
        if fields["op"] == "ping":
            channel.send({"ok": True})
            continue
        run_episode(channel, options.root, fields)
        left = strangers() if options.contained else []
        if left:
            print("the episode left processes:", left, file=sys.stderr, flush=True)
            _exit(LEFT_BEHIND)
        clean(options.root, options.contained)
        channel.send({"ok": True, "ended": True})


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    _exit(0)  # AppWorld's exit handlers may hang
