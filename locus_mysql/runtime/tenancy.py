"""The tenant of a call: `tenant_of`, a `tenant_scope` around it, and `Tenancy` for classes with a ``tenant_of``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

from ..config import StoreOptions
from ..errors import InvalidInput, TenantUnknown
from .arguments import check_tenant

#: The tenants of the scopes around a call, by the identity of the options of each scope's store.
_scopes: ContextVar[Mapping[int, str]] = ContextVar("locus_mysql_tenants", default=MappingProxyType({}))


@contextmanager
def tenant_scope(options: StoreOptions, tenant: str) -> Iterator[None]:
    """Let the store with these options work on another tenant inside the block, and in tasks started inside it."""
    token = _scopes.set({**_scopes.get(), id(options): check_tenant(tenant)})
    try:
        yield
    finally:
        _scopes.reset(token)


def tenant_of(options: StoreOptions) -> str:
    """Return the tenant of a call to the store with these options: that of the scope around it, else the option's."""
    return _scopes.get().get(id(options)) or options.tenant


class Tenancy:
    """Determines the tenant of a call, in this order: a scope around it; ``tenant_of(thread_id)``; the option.

    As in Locus' ``PgCheckpointer``, the call fails if ``tenant_of`` fails or finds no tenant. So nothing is ever stored
    under the wrong tenant.

    Args:
        options: The store's options.
        tenant_of: Returns the tenant of a thread id.
    """

    def __init__(self, options: StoreOptions, tenant_of: Callable[[str], str] | None = None) -> None:
        check_tenant(options.tenant)
        self._options = options
        self._tenant_of = tenant_of

    def of(self, thread_id: str | None = None) -> str:
        """Return the tenant of a call about a thread, or about all threads.

        Raises:
            TenantUnknown: ``tenant_of`` failed, or returned no tenant.
        """
        scoped = _scopes.get().get(id(self._options))
        if scoped is not None:
            return scoped
        if self._tenant_of is None or thread_id is None:
            return self._options.tenant
        try:
            return check_tenant(self._tenant_of(thread_id))
        except InvalidInput as error:
            raise TenantUnknown(f"tenant_of named no tenant for thread {thread_id!r}: {error}") from None
        except Exception as error:
            raise TenantUnknown(f"tenant_of could not place thread {thread_id!r}.") from error
