"""Code shared by several pages: the inspector of the caller's tenant, and the selected family."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request

from ...config import MySQLConfig
from ...families.inspection.records import ThreadRow
from ...families.inspection.sources import ThreadChanges
from ...families.registry import changes_of, families, find_family
from ...inspection.blocking import SyncInspector
from ..problems import invalid, not_found
from ..services import services_of, tenant_of


def inspector_of(request: Request) -> SyncInspector:
    """Return the inspector of the caller's tenant."""
    return services_of(request).inspector(tenant_of(request))


def config_of(request: Request) -> MySQLConfig:
    """Return the options for the caller's tenant."""
    return services_of(request).config.for_store(tenant=tenant_of(request))


def changes_in(request: Request, family: str) -> ThreadChanges:
    """Return the object that changes threads of the caller's tenant."""
    return changes_of(find_family(family), config_of(request))


def families_of(request: Request) -> list[str]:
    """Return the families of threads whose tables exist, in the order in which they are shown."""
    return [name for name in inspector_of(request).families() if find_family(name).holds_threads]


def chosen(given: str, existing: Sequence[str]) -> str | None:
    """Return the family in the query, or the first whose tables exist; None if there is none.

    Raises:
        Problem: There is no such family.
    """
    if not given:
        return existing[0] if existing else None
    family = family_of(given)
    return family if family in existing else None


def family_of(given: str) -> str:
    """Return the name of a family that holds threads.

    Raises:
        Problem: There is none of this name.
    """
    known = [family.name for family in families() if family.holds_threads]
    if given not in known:
        raise invalid(f"Unknown family. Families with threads: {', '.join(known)}.")
    return given


def thread_of(request: Request, family: str, thread_id: str) -> ThreadRow:
    """Return a thread.

    Raises:
        Problem: There is no such thread.
    """
    if family not in families_of(request):
        raise not_found("thread")
    found = inspector_of(request).thread(family, thread_id)
    if found is None:
        raise not_found("thread")
    return found
