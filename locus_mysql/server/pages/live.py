"""Events for pages of threads that are being written: one query per interval for all viewers of a tenant.

An event only reports that a thread changed. The page then reloads.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter
from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from ...errors import LocusMySQLError
from ...runtime.arguments import check_thread_id
from ..problems import Problem, invalid, not_found, try_later
from ..routing import Authenticate
from ..services import Services, caller_tenant, services_of, stores_of
from .common import family_of
from .rendering import HEADERS

LIVE = logging.getLogger("locus_mysql.live")

#: Seconds between two queries; and the longest pause while the database is unavailable.
INTERVAL_S, AWAY_S = 1.0, 5.0

#: Seconds without an event after which a viewer is sent a comment, so that proxies keep the connection.
QUIET_S = 15.0

#: Seconds that a new viewer waits for the check whether the thread exists.
FIRST_LOOK_S = 5.0

#: Largest number of viewers of all tenants. One tenant may have half of them, so that it cannot exclude the others.
VIEWERS = 200

#: Milliseconds after which a browser reconnects.
RETRY_MS = 3_000

#: The family and the id of a thread.
ThreadKey = tuple[str, str]

#: The form of a thread's marker. Any other text of a request would become a line of the stream.
_MARKER = re.compile(r"[\x20-\x7e]{0,200}")


class ChangePoller:
    """Polls the threads that a tenant's viewers have open.

    Args:
        services: The stores.
        tenant: The tenant.
        interval_s: Seconds between two queries.
    """

    def __init__(self, services: Services, tenant: str, interval_s: float) -> None:
        self.inspector = services.of(tenant).awaited_inspector
        self.interval_s = interval_s
        self.viewers: Counter[ThreadKey] = Counter()
        #: The marker of each thread; an empty text if the thread was deleted.
        self.markers: dict[ThreadKey, str] = {}
        self.away = False
        self.looked = asyncio.Condition()
        self.task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Poll as long as there are viewers."""
        pause = self.interval_s
        while self.viewers:
            watched = list(self.viewers)
            try:
                found = await self.inspector.changed(watched)
            except LocusMySQLError as error:
                if not self.away:
                    LIVE.warning("Viewers do not receive changes, as the database fails: %s", type(error).__name__)
                self.away, pause = True, min(pause * 2, AWAY_S)
            else:
                self.away, pause = False, self.interval_s
                self.markers = {key: found.get(key, "") for key in watched}
            async with self.looked:
                self.looked.notify_all()
            await asyncio.sleep(pause)


class Live:
    """The event streams of all viewers.

    Args:
        authenticate: Identifies the caller of a request; called repeatedly, as a sign-in may end during a stream.
        interval_s: Seconds between two queries.
    """

    def __init__(self, authenticate: Authenticate, interval_s: float = INTERVAL_S) -> None:
        self.authenticate = authenticate
        self.interval_s = interval_s
        self.watches: dict[str, ChangePoller] = {}

    async def events(self, request: Request, thread: str, family: str = "agents", seen: str = "") -> Response:
        """``GET /inspect/events``: a stream of ``changed``, ``away`` and ``back``."""
        # One query reads the threads of all viewers, so one bad marker must not break it.
        key = (family_of(family), check_thread_id(thread))
        # A browser that reconnects sends the last marker that it received.
        seen = request.headers.get("last-event-id") or seen
        if not _MARKER.fullmatch(seen):
            raise invalid("Last-Event-ID is not the id of an event.")
        existing = await stores_of(request).awaited_inspector.families()
        if family not in existing:
            raise not_found("thread")
        mine = self.watches.get(caller_tenant(request))
        if sum(watch.viewers.total() for watch in self.watches.values()) >= VIEWERS or (
            mine is not None and mine.viewers.total() >= VIEWERS // 2
        ):
            raise try_later("busy", "Too many live pages are open. Try again later.", seconds=10)
        await self._check_exists(services_of(request), caller_tenant(request), key)
        return StreamingResponse(self.stream(request, key, seen), headers=HEADERS, media_type="text/event-stream")

    async def _check_exists(self, services: Services, tenant: str, key: ThreadKey) -> None:
        """Refuse a thread that does not exist, as no event would ever end its stream. Shares the poller's query.

        Raises:
            Problem: There is no such thread. Not raised while the database is unavailable: the stream reports that.
        """
        watch = self._joined(services, tenant, key)
        try:
            async with asyncio.timeout(FIRST_LOOK_S), watch.looked:
                await watch.looked.wait_for(lambda: key in watch.markers or watch.away)
        except TimeoutError:
            return
        finally:
            self._leave(watch, key)
        if watch.markers.get(key) == "":
            raise not_found("thread")

    async def stream(self, request: Request, key: ThreadKey, seen: str) -> AsyncIterator[str]:
        """Yield the events of one viewer.

        Args:
            request: The viewer's request.
            key: The thread.
            seen: The marker of the state that the viewer has.
        """
        services = services_of(request)
        tenant = caller_tenant(request)
        watch = self._joined(services, tenant, key)
        away = False
        try:
            yield f"retry: {RETRY_MS}\n\n"
            while not services.stopping.is_set() and not _ended(watch):
                text = ""
                if watch.away != away:
                    away = watch.away
                    text = _event("away" if away else "back", seen)
                marker = watch.markers.get(key)
                if not away and marker is not None and marker != seen:
                    seen = marker
                    text += _event("changed", seen)
                    if not seen:  # the thread was deleted
                        yield text
                        return
                yield text or ": nothing new\n\n"
                await self._wait(services, watch, key, seen, away)
                if not self._is_still(request, tenant):
                    yield _event("ended", seen)
                    return
        finally:
            self._leave(watch, key)

    def _leave(self, watch: ChangePoller, key: ThreadKey) -> None:
        watch.viewers[key] -= 1
        watch.viewers = +watch.viewers

    def _is_still(self, request: Request, tenant: str) -> bool:
        """Return whether the sign-in is still valid for this tenant. A token can be moved to another tenant."""
        try:
            return self.authenticate(request).tenant == tenant
        except Problem:
            return False

    async def _wait(self, services: Services, watch: ChangePoller, key: ThreadKey, seen: str, away: bool) -> None:
        """Wait for a change, for the end, or until a comment is due."""

        def news() -> bool:
            return (
                services.stopping.is_set()
                or _ended(watch)
                or watch.away != away
                or (not away and watch.markers.get(key, seen) != seen)
            )

        try:
            async with asyncio.timeout(QUIET_S), watch.looked:
                await watch.looked.wait_for(news)
        except TimeoutError:
            return

    def _joined(self, services: Services, tenant: str, key: ThreadKey) -> ChangePoller:
        """Add a viewer to the poller of a tenant, which runs as long as it has viewers."""
        watch = self.watches.get(tenant)
        if watch is None or watch.task is None or watch.task.done():
            watch = self.watches[tenant] = ChangePoller(services, tenant, self.interval_s)
        watch.viewers[key] += 1
        if watch.task is None:
            watch.task = asyncio.create_task(watch.run(), name="locus-mysql: viewers")
            watch.task.add_done_callback(lambda _: self._forget(tenant, watch))
        return watch

    def _forget(self, tenant: str, watch: ChangePoller) -> None:
        if self.watches.get(tenant) is watch:
            del self.watches[tenant]


def _ended(watch: ChangePoller) -> bool:
    return watch.task is None or watch.task.done()


def _event(name: str, marker: str) -> str:
    """Format an event. Markers contain no line ends."""
    return f"event: {name}\nid: {marker}\ndata: {{}}\n\n"
