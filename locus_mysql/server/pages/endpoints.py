"""The pages: `pages_group`."""

from __future__ import annotations

from ..callers import Caller
from ..routing import Endpoint, Group
from ..tokens import Tokens
from .changes import copy_form, copy_thread, delete, delete_form
from .differences import difference_page
from .live import Live
from .memories import memories_page, memory_page
from .query_parameters import (
    DifferenceQuery,
    EventsQuery,
    FamilyQuery,
    LoginQuery,
    MemoriesQuery,
    MemoryQuery,
    MetadataQuery,
    SearchQuery,
    SessionQuery,
    SessionsQuery,
    StaticQuery,
    ThreadQuery,
    ThreadsQuery,
    ZoneQuery,
)
from .rendering import compile_templates, explained_as_page
from .searching import metadata_page, search_page
from .sessions import session_page, sessions_page
from .sign_in import SignIns
from .static import static_file
from .statistics import statistics_page
from .thread import state_file, thread_page
from .threads import threads_page
from .time_zone import choose_zone, zone_form


def pages_group(tokens: Tokens | None, anyone: Caller, cookie_key: bytes | None = None) -> Group:
    """Return the group of all pages, for users who have signed in.

    Args:
        tokens: The tokens; None if users need none.
        anyone: The caller that every user is then.
        cookie_key: The key that signs cookies; None generates one.
    """
    compile_templates()  # before the first request
    sign_ins = SignIns(tokens, anyone, cookie_key)
    live = Live(sign_ins.authenticate)
    endpoints = [
        Endpoint("GET", "/", threads_page, query=ThreadsQuery),
        Endpoint("GET", "/inspect/thread", thread_page, query=ThreadQuery),
        Endpoint("GET", "/inspect/state.json", state_file, query=ThreadQuery),
        Endpoint("GET", "/inspect/difference", difference_page, query=DifferenceQuery),
        Endpoint("GET", "/inspect/events", live.events, query=EventsQuery),
        Endpoint("GET", "/inspect/search", search_page, query=SearchQuery),
        Endpoint("GET", "/inspect/metadata", metadata_page, query=MetadataQuery),
        Endpoint("GET", "/inspect/statistics", statistics_page, query=FamilyQuery),
        Endpoint("GET", "/inspect/memories", memories_page, query=MemoriesQuery),
        Endpoint("GET", "/inspect/memory", memory_page, query=MemoryQuery),
        Endpoint("GET", "/inspect/sessions", sessions_page, query=SessionsQuery),
        Endpoint("GET", "/inspect/session", session_page, query=SessionQuery),
        Endpoint("GET", "/inspect/copy", copy_form, query=ThreadQuery),
        Endpoint("POST", "/inspect/copy", copy_thread, "write", body="form"),
        Endpoint("GET", "/inspect/delete", delete_form, query=ThreadQuery),
        Endpoint("POST", "/inspect/delete", delete, "write", body="form"),
        Endpoint("GET", "/inspect/zone", zone_form, query=ZoneQuery),
        Endpoint("POST", "/inspect/zone", choose_zone, body="form"),
        Endpoint("GET", "/login", sign_ins.ask, "open", query=LoginQuery),
        Endpoint("POST", "/login", sign_ins.sign_in, "open", body="form"),
        Endpoint("POST", "/logout", sign_ins.sign_out, body="form"),
        Endpoint("GET", "/static/{name}", static_file, "open", query=StaticQuery),
    ]
    return Group(endpoints, sign_ins.authenticate, explained_as_page)
