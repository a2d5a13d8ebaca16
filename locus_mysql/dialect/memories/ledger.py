"""The idempotency ledger of long-term memory: the outcomes of its writes."""

from __future__ import annotations

from .. import ledger
from ..statement import Statement

VERSION, OF_ITEM = "MAX(i.version)", "{items} i WHERE i.tenant = %s AND i.path = %s AND i.item_key = %s"


class MemoryLedger(ledger.Ledger):
    """The ledger, and recording the outcomes of writes."""

    def record_version(self, tenant: str, token: bytes, path: bytes, key: bytes) -> Statement:
        """Record the token of a write whose outcome is the version of an item."""
        return self._record_outcome(tenant, token, VERSION, OF_ITEM, (tenant, path, key))
