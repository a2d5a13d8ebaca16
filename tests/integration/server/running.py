"""`running`: the service on its own port, served by Uvicorn in a thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import uvicorn

from locus_mysql.server.running import uvicorn_config

#: The timeout for starting and for stopping the service, in seconds.
WAIT_S = 60.0


@contextmanager
def running(app: Any, **options: Any) -> Iterator[str]:
    """Serve an application on 127.0.0.1 as `serve` does, and yield its base URL. The options are those of Uvicorn."""
    # The command and its tests use uvloop, so these tests run the service on asyncio's own event loop.
    loop: Literal["asyncio"] = "asyncio"
    if hasattr(app.state, "services"):
        config = uvicorn_config(app, app.state.limits, port=0, loop=loop, **options)
    else:  # an application that mounts the service
        config = uvicorn.Config(app, port=0, loop=loop, log_config=None, access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        end = time.monotonic() + WAIT_S
        while not server.started:
            assert thread.is_alive(), "the service did not start"
            assert time.monotonic() < end, "the service took too long to start"
            time.sleep(0.01)
        (listening,) = (socket for one in server.servers for socket in one.sockets)
        yield f"{'https' if server.config.is_ssl else 'http'}://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        if hasattr(app.state, "services"):
            app.state.services.stopping.set()  # as a signal does
        server.should_exit = True
        thread.join(WAIT_S)
        assert not thread.is_alive(), "the service did not stop"
