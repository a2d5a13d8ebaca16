"""The idempotency ledger of transcripts: the outcomes of its writes."""

from __future__ import annotations

from .. import ledger
from ..statement import Statement
from .pieces import RowKey

# The revision of the transcript after the write.
REVISION, OF_TRANSCRIPT = "MAX(t.revision)", "{transcripts} t WHERE {KEY}"


class TranscriptLedger(ledger.Ledger):
    """The ledger, and recording the outcomes of writes."""

    def record_revision(self, key: RowKey, token: bytes) -> Statement:
        """Record the token of a write whose outcome is the transcript's new revision."""
        return self._record_outcome(key.tenant, token, REVISION, OF_TRANSCRIPT, key)
