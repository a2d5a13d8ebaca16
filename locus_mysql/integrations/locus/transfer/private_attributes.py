"""The private attributes of Locus' checkpointers and backends that copies read, checked with locus-sdk 3.0.1.

Locus' public methods do not list all threads and checkpoints of these stores. No other module of this folder uses a
private attribute of Locus, so this is the one to check with a new version; `CHECKED_WITH` is then raised.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeAlias

from locus.memory.backends.adapters import StorageBackendAdapter
from locus.memory.backends.file import FileCheckpointer
from locus.memory.backends.http import HTTPCheckpointer
from locus.memory.backends.oci_bucket import OCIBucketBackend
from locus.memory.backends.s3 import S3Backend

from ....runtime.regular_files import write_regular

#: The version of locus-sdk whose private attributes these are.
CHECKED_WITH = "3.0.1"

#: A storage of objects.
BucketBackend: TypeAlias = S3Backend | OCIBucketBackend

#: Names of objects per page; neither service returns more.
_NAMES_PAGE = 1_000


def thread_folder(checkpointer: FileCheckpointer, thread_id: str) -> Path:
    """Return the folder of a thread."""
    return Path(checkpointer._get_thread_dir(thread_id))


class LinklessFiles(FileCheckpointer):
    """A `FileCheckpointer` that never writes through a link, which another user may have put into its folder.

    Args:
        like: The checkpointer whose folder and options it has.
    """

    def __init__(self, like: FileCheckpointer) -> None:
        super().__init__(like.base_dir, like.pretty, like.max_checkpoints_per_thread)

    def _write_json(self, path: Path, data: dict[str, Any]) -> None:
        write_regular(path, json.dumps(data, indent=2 if self.pretty else None, default=str).encode())


def backend_of(adapter: StorageBackendAdapter) -> Any:
    """Return the backend behind an adapter."""
    return adapter._backend


async def client_of(checkpointer: HTTPCheckpointer) -> Any:
    """Return the HTTP client, with the service's address and headers."""
    return await checkpointer._get_client()


def bucket_prefix(backend: BucketBackend, thread_id: str = "") -> str:
    """Return the prefix of the names of a thread's objects; without a thread, that of all threads."""
    prefix: str = backend._thread_prefix(thread_id)
    return prefix if thread_id else prefix.removesuffix("/")


async def read_object(backend: BucketBackend, name: str) -> Any:
    """Return the JSON in an object; None if there is no such object."""
    return await backend._get_json(name)


async def ensure_bucket(backend: BucketBackend) -> None:
    """Check that there is a bucket; some backends create it."""
    await backend._ensure_bucket()


def object_names(backend: BucketBackend, begin: str, cursor: str | None) -> tuple[list[str], str | None]:
    """Return a page of the names of objects with a prefix, and the cursor of the next page; None after the last."""
    client = backend._get_client()
    if isinstance(backend, S3Backend):
        further = {} if cursor is None else {"ContinuationToken": cursor}
        answer = client.list_objects_v2(Bucket=backend.bucket, Prefix=begin, MaxKeys=_NAMES_PAGE, **further)
        names = [one["Key"] for one in answer.get("Contents", ())]
        return names, answer["NextContinuationToken"] if answer.get("IsTruncated") else None
    further = {} if cursor is None else {"start": cursor}
    data = client.list_objects(
        namespace_name=backend.config.namespace,
        bucket_name=backend.config.bucket_name,
        prefix=begin,
        limit=_NAMES_PAGE,
        retry_strategy=backend._get_retry_strategy(),
        **further,
    ).data
    return [one.name for one in data.objects or ()], data.next_start_with
