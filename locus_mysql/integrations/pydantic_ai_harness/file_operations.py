"""The operations on memory files, as generators that do no I/O: `FileOperations`.

A file is a transcript without items: its content is the state, its version the tag. The receipts of operations are
items of a few other transcripts, written in the transaction of the file.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from typing import Any
from zlib import crc32

from pydantic_ai_harness.memory import (
    MemoryConflictError,
    MemoryFile,
    MemoryMutation,
    MemoryOperation,
    MemoryOperationConflictError,
)

from ...config import MySQLConfig
from ...engine.logs import HOUSEKEEPING, loggable
from ...engine.operation import Operation
from ...errors import LocusMySQLError, VersionConflict
from ...families.transcripts.operations import TranscriptOperations
from ...families.transcripts.records import Header, NewItem, TranscriptKey, Write
from ...runtime.sampling import one_in
from .paths import check_path, check_prefix, checked_metadata
from .records import item_id

#: The kind of these transcripts. A file's path is their name.
KIND = "pydantic-ai-memory"

#: The collection of the receipts. Several transcripts hold them, so that few writers wait for each other.
RECEIPTS, RECEIPT_TRANSCRIPTS = "receipts", 16

#: The receipts that each of these transcripts keeps: as many as the framework's store in memory keeps in all.
RECEIPTS_KEPT = 1_024

#: One in this many operations is followed by the removal of old receipts.
TRIMMED_EVERY = 64

_VERSION = re.compile("[0-9a-f]{32}")


class FileOperations:
    """Stores the memory files of one tenant.

    Args:
        config: The options.
    """

    def __init__(self, config: MySQLConfig) -> None:
        self.config = config
        self._transcripts = TranscriptOperations(config)
        self.schema = self._transcripts.schema

    def read(self, path: str, *, max_chars: int) -> Operation[MemoryFile | None]:
        """Return a file; None if it does not exist. One round trip.

        Args:
            path: Its path, at most 800 characters.
            max_chars: Return only this many of the first characters of its content.

        Raises:
            ValueError: The path is invalid, or ``max_chars`` is not positive.
            CorruptCheckpoint: The row is damaged.
        """
        check_path(path)
        _check_positive(max_chars, "max_chars")
        found = yield from self._transcripts.get(_file_key(path))
        if found is None:
            return None
        content: str = found.header.state["content"]
        return MemoryFile(
            content=content[:max_chars],
            version=found.header.tag or "",
            operation_id=found.header.state.get("operation_id"),
            truncated=len(content) > max_chars,
            metadata=found.header.state.get("metadata"),
        )

    def get_operation(self, operation: MemoryOperation) -> Operation[MemoryMutation | None]:
        """Return the result of an operation that was carried out; None if it was not. One round trip.

        Raises:
            MemoryOperationConflictError: The operation had another fingerprint.
        """
        found = yield from self._transcripts.find(_receipts_key(operation), item_id(operation.id))
        if found is None:
            return None
        receipt: dict[str, Any] = found.content
        if receipt["fingerprint"] != operation.fingerprint:
            raise MemoryOperationConflictError(f"operation id {operation.id!r} was reused with different arguments")
        return MemoryMutation(version=receipt["version"], replayed=True, existed=receipt["existed"])

    def write(
        self,
        path: str,
        content: str,
        *,
        expected_version: str | None,
        operation: MemoryOperation | None = None,
    ) -> Operation[MemoryMutation]:
        """Create or replace a file without metadata; see `write_with_metadata`."""
        return (
            yield from self.write_with_metadata(
                path, content, expected_version=expected_version, metadata=None, operation=operation
            )
        )

    def write_with_metadata(
        self,
        path: str,
        content: str,
        *,
        expected_version: str | None,
        metadata: Mapping[str, str] | None,
        operation: MemoryOperation | None = None,
    ) -> Operation[MemoryMutation]:
        """Create or replace a file if it has this version. One round trip.

        Args:
            path: Its path, at most 800 characters.
            content: Its new content.
            expected_version: The version that it must have; None: it must not exist.
            metadata: Texts that describe this write, at most 4,096 characters as JSON.
            operation: The write's identity: if it was carried out before, its result is returned again.

        Raises:
            ValueError: The path or the metadata is invalid, or something cannot be stored exactly.
            MemoryConflictError: The file has another version; nothing was written.
            MemoryOperationConflictError: The operation was carried out with another fingerprint.
            StateTooLarge: The content needs a larger packet than the server's ``max_allowed_packet``.
        """
        check_path(path)
        state: dict[str, Any] = {"content": content}
        if operation is not None:
            state["operation_id"] = operation.id
        described = checked_metadata(metadata)
        if described is not None:
            state["metadata"] = described
        version = os.urandom(16).hex()
        mutation = MemoryMutation(version=version, replayed=False, existed=expected_version is not None)
        header = Header(state, version)
        return (yield from self._mutate(path, header, expected_version, operation, mutation))

    def delete(
        self, path: str, *, expected_version: str | None, operation: MemoryOperation | None = None
    ) -> Operation[MemoryMutation]:
        """Delete a file if it has this version; see `write_with_metadata`. One round trip.

        Args:
            path: Its path.
            expected_version: The version that it must have; None: it must not exist, and only a receipt is stored.
            operation: The deletion's identity.
        """
        check_path(path)
        mutation = MemoryMutation(version=None, replayed=False, existed=expected_version is not None)
        return (yield from self._mutate(path, None, expected_version, operation, mutation))

    def list_paths(self, prefix: str = "", *, limit: int) -> Operation[list[str]]:
        """Return the paths that begin with a prefix, in their order. One round trip.

        Args:
            prefix: The prefix, which may end inside of a name.
            limit: The maximum number of paths to return.

        Raises:
            ValueError: The prefix is invalid, or the limit is not positive.
        """
        check_prefix(prefix)
        _check_positive(limit, "limit")
        found = yield from self._transcripts.list_transcripts(KIND, "", prefix=prefix, limit=limit)
        return [one.key.name for one in found]

    def files_in(self, prefix: str, limit: int) -> Operation[list[tuple[str, str]]]:
        """Return paths and contents of files whose paths have no further slash behind a prefix. One round trip.

        Args:
            prefix: The prefix.
            limit: The maximum number of files to return.
        """
        found = yield from self._transcripts.list_transcripts(
            KIND, "", prefix=prefix, delimiter="/", states=True, limit=limit
        )
        return [(one.key.name, one.header.state["content"]) for one in found]

    def _mutate(
        self,
        path: str,
        header: Header | None,
        expected: str | None,
        operation: MemoryOperation | None,
        mutation: MemoryMutation,
    ) -> Operation[MemoryMutation]:
        """Write or delete a file, and store the receipt."""
        what = "deleted" if header is None else "written"
        changed = Write(
            _file_key(path),
            header=header,
            expected=0 if expected is None else None,
            expected_tag=expected,
            delete=header is None,
        )
        writes = [changed] if operation is None else [changed, _receipt(operation, mutation)]
        if expected is None or _VERSION.fullmatch(expected):
            with contextlib.suppress(VersionConflict):
                written = yield from self._transcripts.write(writes, once=True)
                if operation is None:
                    return mutation
                if written[1].added:
                    yield from self._trim(_receipts_key(operation))
                    return mutation
        receipt = None if operation is None else (yield from self.get_operation(operation))
        if receipt is None:
            raise MemoryConflictError(f"memory path {path!r} changed before it could be {what}")
        return receipt

    def _trim(self, key: TranscriptKey) -> Operation[None]:
        """Occasionally remove old receipts. A failure is only logged: the operation was carried out."""
        if not one_in(TRIMMED_EVERY):
            return
        try:
            found = yield from self._transcripts.get(key)
            if found is None or found.items <= RECEIPTS_KEPT:
                return
            oldest = yield from self._transcripts.read(key, limit=found.items - RECEIPTS_KEPT)
            seqs = [] if oldest is None else [item.seq for item in oldest.items]
            yield from self._transcripts.write([Write(key, remove=seqs, expected=found.revision, expires=False)])
        except VersionConflict:  # another process added a receipt meanwhile; a later operation removes the old ones
            return
        except LocusMySQLError as error:
            HOUSEKEEPING.warning("A memory file was written, but old receipts were not removed: %s.", loggable(error))


def _receipt(operation: MemoryOperation, mutation: MemoryMutation) -> Write:
    receipt = {"fingerprint": operation.fingerprint, "version": mutation.version, "existed": mutation.existed}
    return Write(_receipts_key(operation), [NewItem(receipt, item_id(operation.id))], expires=False)


def _receipts_key(operation: MemoryOperation) -> TranscriptKey:
    slot = crc32(operation.id.encode(errors="surrogatepass")) % RECEIPT_TRANSCRIPTS
    return TranscriptKey(KIND, RECEIPTS, f"{slot:02}")


def _file_key(path: str) -> TranscriptKey:
    return TranscriptKey(KIND, "", path)


def _check_positive(number: int, what: str) -> None:
    if number <= 0:
        raise ValueError(f"{what} must be positive")
