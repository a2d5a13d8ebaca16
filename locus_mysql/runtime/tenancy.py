"""Determines the tenant of a call: `Tenancy`."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..errors import InvalidInput, TenantUnknown
from .arguments import check_tenant


class Tenancy:
    """Determines the tenant of a call, in this order: a `scope` around it; ``tenant_of(thread_id)``; the fixed tenant.

    As in Locus' ``PgCheckpointer``, the call fails if ``tenant_of`` fails or finds no tenant. So nothing is ever stored
    under the wrong tenant.

    Args:
        tenant: The fixed tenant.
        tenant_of: Returns the tenant of a thread id.
    """

    def __init__(self, tenant: str, tenant_of: Callable[[str], str] | None = None) -> None:
        self._tenant = check_tenant(tenant)
        self._tenant_of = tenant_of
        self._scope: contextvars.ContextVar[str | None] = contextvars.ContextVar(
            f"locus_mysql_tenant_{id(self)}", default=None
        )

    @contextmanager
    def scope(self, tenant: str) -> Iterator[None]:
        """Assign every call inside the block, and in tasks started inside it, to this tenant."""
        token = self._scope.set(check_tenant(tenant))
        try:
            yield
        finally:
            self._scope.reset(token)

    def of(self, thread_id: str | None = None) -> str:
        """Return the tenant of a call about a thread, or about all threads.

        Raises:
            TenantUnknown: ``tenant_of`` failed, or returned no tenant.
        """
        scoped = self._scope.get()
        if scoped is not None:
            return scoped
        if self._tenant_of is None or thread_id is None:
            return self._tenant
        try:
            return check_tenant(self._tenant_of(thread_id))
        except InvalidInput as error:
            raise TenantUnknown(f"tenant_of named no tenant for thread {thread_id!r}: {error}") from None
        except Exception as error:
            raise TenantUnknown(f"tenant_of could not place thread {thread_id!r}.") from error
