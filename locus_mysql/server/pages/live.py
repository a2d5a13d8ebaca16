"""Threads that are being written tell their viewers: one query an interval for all of a tenant's viewers together.

What is sent is only that a thread changed; the page then asks for itself again, as it would if somebody reloaded it.
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
from ...inspection.records import ThreadFamily
from ...runtime.arguments import check_thread_id
from ..problems import Problem, invalid, not_found, try_later
from ..routing import Authenticate
from ..services import Services, services_of, tenant_of
from .common import families_of, family_of
from .queries import EventsQuery
from .rendering import HEADERS

LIVE = logging.getLogger("locus_mysql.live")

#: How often is looked, in seconds; and at most, while the database is away.
INTERVAL_S, AWAY_S = 1.0, 5.0

#: After so many seconds without news a viewer is sent a comment, so that proxies keep the connection.
QUIET_S = 15.0

#: How long a new viewer waits until it is known whether the thread exists, in seconds.
FIRST_LOOK_S = 5.0

#: Viewers at once, of all tenants. One tenant may have half of them, so that none can lock the others out.
VIEWERS = 200

#: After how many milliseconds a browser connects anew.
RETRY_MS = 3_000

Place = tuple[ThreadFamily, str]

#: What a thread's state is told by: whatever else stands in a request would become a line of the stream.
_MARKER = re.compile(r"[\x20-\x7e]{0,200}")


class Watch:
    """What a tenant's viewers look at, and how it is.

    Args:
        services: The stores.
        tenant: Whose.
        interval_s: How often is looked, in seconds.
    """

    def __init__(self, services: Services, tenant: str, interval_s: float) -> None:
        self.inspector = services.inspector(tenant)
        self.interval_s = interval_s
        self.viewers: Counter[Place] = Counter()
        #: For each place, its marker; the empty text if the thread is gone.
        self.markers: dict[Place, str] = {}
        self.away = False
        self.looked = asyncio.Condition()
        self.task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Look as long as somebody watches."""
        pause = self.interval_s
        while self.viewers:
            watched = list(self.viewers)
            try:
                found = await self.inspector.changed(watched)
            except LocusMySQLError as error:
                if not self.away:
                    LIVE.warning("Viewers are not told of changes, as the database fails: %s", type(error).__name__)
                self.away, pause = True, min(pause * 2, AWAY_S)
            else:
                self.away, pause = False, self.interval_s
                self.markers = {place: found.get(place, "") for place in watched}
            async with self.looked:
                self.looked.notify_all()
            await asyncio.sleep(pause)


class Live:
    """Watches for viewers.

    Args:
        authenticate: Tells whose a request is; asked again and again, as a sign-in may end while somebody looks.
        interval_s: How often is looked, in seconds.
    """

    def __init__(self, authenticate: Authenticate, interval_s: float = INTERVAL_S) -> None:
        self.authenticate = authenticate
        self.interval_s = interval_s
        self.watches: dict[str, Watch] = {}

    async def events(self, request: Request) -> Response:
        """``GET /inspect/events``: a stream of ``changed``, ``away`` and ``back``."""
        query: EventsQuery = request.state.query
        family = family_of(query.family)
        thread_id = check_thread_id(query.thread)  # all viewers' threads are asked for together: one must not spoil it
        # A browser that connects anew says what it saw last.
        seen = request.headers.get("last-event-id") or query.seen
        if not _MARKER.fullmatch(seen):
            raise invalid("What was seen last is not what an event told.")
        if family not in await families_of(request):
            raise not_found("thread")
        mine = self.watches.get(tenant_of(request))
        if sum(watch.viewers.total() for watch in self.watches.values()) >= VIEWERS or (
            mine is not None and mine.viewers.total() >= VIEWERS // 2
        ):
            raise try_later("busy", "Too many look at threads just now.", seconds=10)
        place = (family, thread_id)
        await self._check_exists(services_of(request), tenant_of(request), place)
        return StreamingResponse(self.stream(request, place, seen), headers=HEADERS, media_type="text/event-stream")

    async def _check_exists(self, services: Services, tenant: str, place: Place) -> None:
        """Refuse a thread that does not exist, as no event would ever end its stream; asks with all viewers together.

        Raises:
            Problem: There is no such thread. None while the database is away: the stream says that.
        """
        watch = self._joined(services, tenant, place)
        try:
            async with asyncio.timeout(FIRST_LOOK_S), watch.looked:
                await watch.looked.wait_for(lambda: place in watch.markers or watch.away)
        except TimeoutError:
            return
        finally:
            self._leave(watch, place)
        if watch.markers.get(place) == "":
            raise not_found("thread")

    async def stream(self, request: Request, place: Place, seen: str) -> AsyncIterator[str]:
        """What one viewer is told.

        Args:
            request: The viewer's.
            place: What is looked at.
            seen: The marker of what the viewer has.
        """
        services = services_of(request)
        tenant = tenant_of(request)
        watch = self._joined(services, tenant, place)
        away = False
        try:
            yield f"retry: {RETRY_MS}\n\n"
            while not services.stopping.is_set() and not _ended(watch):
                text = ""
                if watch.away != away:
                    away = watch.away
                    text = _event("away" if away else "back", seen)
                marker = watch.markers.get(place)
                if not away and marker is not None and marker != seen:
                    seen = marker
                    text += _event("changed", seen)
                    if not seen:  # the thread was deleted
                        yield text
                        return
                yield text or ": nothing new\n\n"
                await self._wait(services, watch, place, seen, away)
                if not self._is_still(request, tenant):
                    yield _event("ended", seen)
                    return
        finally:
            self._leave(watch, place)

    def _leave(self, watch: Watch, place: Place) -> None:
        watch.viewers[place] -= 1
        watch.viewers = +watch.viewers

    def _is_still(self, request: Request, tenant: str) -> bool:
        """Whether the sign-in holds, and is for this tenant: a token may be given to another one."""
        try:
            return self.authenticate(request).tenant == tenant
        except Problem:
            return False

    async def _wait(self, services: Services, watch: Watch, place: Place, seen: str, away: bool) -> None:
        """Wait for news, for the end, or until a comment is due."""

        def news() -> bool:
            return (
                services.stopping.is_set()
                or _ended(watch)
                or watch.away != away
                or (not away and watch.markers.get(place, seen) != seen)
            )

        try:
            async with asyncio.timeout(QUIET_S), watch.looked:
                await watch.looked.wait_for(news)
        except TimeoutError:
            return

    def _joined(self, services: Services, tenant: str, place: Place) -> Watch:
        """The watch of a tenant, with one more viewer; it runs from the first on."""
        watch = self.watches.get(tenant)
        if watch is None or watch.task is None or watch.task.done():
            watch = self.watches[tenant] = Watch(services, tenant, self.interval_s)
        watch.viewers[place] += 1
        if watch.task is None:
            watch.task = asyncio.create_task(watch.run(), name="locus-mysql: viewers")
            watch.task.add_done_callback(lambda _: self._forget(tenant, watch))
        return watch

    def _forget(self, tenant: str, watch: Watch) -> None:
        if self.watches.get(tenant) is watch:
            del self.watches[tenant]


def _ended(watch: Watch) -> bool:
    return watch.task is None or watch.task.done()


def _event(name: str, marker: str) -> str:
    """An event; markers hold no ends of lines."""
    return f"event: {name}\nid: {marker}\ndata: {{}}\n\n"
