"""What several pages need: the tenant's inspector, and which family is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from starlette.requests import Request

from ...inspection.inspector import Inspector
from ...inspection.records import ThreadFamily, ThreadRow
from ..problems import invalid, not_found
from ..services import services_of, tenant_of
from . import texts


def inspector_of(request: Request) -> Inspector:
    """What looks at all that the caller's tenant keeps."""
    return services_of(request).inspector(tenant_of(request))


async def families_of(request: Request) -> list[ThreadFamily]:
    """The families of threads that are there, in the order in which they are shown."""
    there = await inspector_of(request).families()
    return [cast(ThreadFamily, family) for family in texts.FAMILIES if family in there]


def chosen(given: str, there: Sequence[ThreadFamily]) -> ThreadFamily | None:
    """The family that is asked for, or the first that is there; None if there is none.

    Raises:
        Problem: There is no such family.
    """
    if not given:
        return there[0] if there else None
    family = family_of(given)
    return family if family in there else None


def family_of(given: str) -> ThreadFamily:
    """A family's name.

    Raises:
        Problem: It is none.
    """
    if given not in texts.FAMILIES:
        raise invalid(f"There are threads of {', '.join(texts.FAMILIES)}.")
    return cast(ThreadFamily, given)


async def thread_of(request: Request, family: ThreadFamily, thread_id: str) -> ThreadRow:
    """A thread.

    Raises:
        Problem: There is none.
    """
    if family not in await families_of(request):
        raise not_found("thread")
    found = await inspector_of(request).thread(family, thread_id)
    if found is None:
        raise not_found("thread")
    return found
