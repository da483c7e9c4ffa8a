"""A chat endpoint that takes its time and keeps its own book of what it was asked."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any


class PaidEndpoint:
    """Answers with a digest of the prompt after ``seconds``; as JSON where a record is asked for.

    ``asked`` counts each prompt, ``most_in_flight`` the calls at a time. A call waits until `allow` has let so many be
    answered: what asks can't get done before whoever watches is.
    """

    def __init__(self, seconds: float) -> None:
        self._allowed = 0.0
        self._let_go = threading.Condition()
        self.asked: Counter[str] = Counter()
        self.most_in_flight = 0
        self._in_flight = 0
        self._lock = threading.Lock()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._send({"object": "list", "data": []})

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                prompt = json.dumps(request["messages"])
                with endpoint._lock:
                    endpoint.asked[prompt] += 1
                    endpoint._in_flight += 1
                    endpoint.most_in_flight = max(endpoint.most_in_flight, endpoint._in_flight)
                endpoint._wait_for_leave()
                time.sleep(seconds)
                with endpoint._lock:
                    endpoint._in_flight -= 1
                digest = hashlib.sha256(prompt.encode()).hexdigest()[:12]
                record = json.dumps({"record": digest, "keywords": [], "entities": []})
                self._send(_completion(record if "JSON only" in prompt else digest))

            def _send(self, content: Any) -> None:
                body = json.dumps(content).encode()
                try:
                    self.send_response(200)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True  # whoever asked was killed

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def allow(self, calls: float) -> None:
        """Let so many more calls be answered."""
        with self._let_go:
            self._allowed += calls
            self._let_go.notify_all()

    def _wait_for_leave(self) -> None:
        with self._let_go:
            self._let_go.wait_for(lambda: self._allowed >= 1)
            self._allowed -= 1

    def __enter__(self) -> PaidEndpoint:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.allow(float("inf"))  # nobody waits for ever
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(30)


def _completion(text: str) -> dict[str, Any]:
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 0,
        "model": "paid",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }
