"""A model that serves Anthropic's Messages API on the loopback interface and answers from a script: `ScriptedModel`."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class ScriptedModel:
    """Answers each request with the number of messages that it received.

    Attributes:
        url: The address, for ``ANTHROPIC_BASE_URL``.
        heard: The number of user and assistant messages in each request.
    """

    def __init__(self) -> None:
        self.heard: list[int] = []
        self.url = ""

    def answer(self, body: dict[str, Any]) -> str:
        """Return the answer to a request."""
        self.heard.append(len(body["messages"]))
        return f"I have heard {len(body['messages'])} messages."

    @contextmanager
    def serving(self) -> Iterator[ScriptedModel]:
        """Serve on a free port of 127.0.0.1 until the end of the block."""
        model = self

        class Handler(_Handler):
            scripted = model

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    """Streams the answer as server-sent events. The status of other paths is 404."""

    scripted: ScriptedModel
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._send(200, "text/plain", b"")

    def do_GET(self) -> None:
        self._send(404, "text/plain", b"")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path.partition("?")[0] != "/v1/messages":
            self._send(404, "text/plain", b"")
            return
        text = self.scripted.answer(body)
        usage = {"input_tokens": 10, "output_tokens": 10}
        message = {"id": "msg_scripted", "type": "message", "role": "assistant", "model": body["model"], "usage": usage}
        block = {"type": "text", "text": text}
        if body.get("stream"):
            stop = {"stop_reason": "end_turn", "stop_sequence": None}
            events: list[dict[str, Any]] = [
                {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
                {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
                {"type": "content_block_stop", "index": 0},
                {"type": "message_delta", "delta": stop, "usage": usage},
                {"type": "message_stop"},
            ]
            lines = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
            self._send(200, "text/event-stream", lines.encode())
        else:
            whole = {**message, "content": [block], "stop_reason": "end_turn", "stop_sequence": None}
            self._send(200, "application/json", json.dumps(whole).encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
