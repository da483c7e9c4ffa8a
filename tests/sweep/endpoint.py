"""A chat endpoint at a port of one's choice, for addresses at which nothing answers at first."""

from __future__ import annotations

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

from tests.llm.endpoint import completion


def free_port() -> int:
    """A port at which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._send({"object": "list", "data": []})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.keys.append(self.headers.get("Authorization", ""))  # type: ignore[attr-defined]
        self._send(completion("fine"))

    def _send(self, content: object) -> None:
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


class PlainEndpoint:
    """Answers every chat with ``fine``, proxied ones as well; ``keys`` holds their Authorization headers."""

    def __init__(self, port: int = 0) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _Handler)
        self._server.daemon_threads = True
        self.keys: list[str] = []
        self._server.keys = self.keys  # type: ignore[attr-defined]
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> PlainEndpoint:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(30)
