"""Small stand-ins for the clients of services that cannot run here: S3, OCI Object Storage and OpenSearch.

Locus' own classes run on them. They implement the parts of the services' APIs that those classes use.
"""

from __future__ import annotations

import copy
import io
import sys
from datetime import UTC, datetime
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from locus.memory.backends.adapters import StorageBackendAdapter
from locus.memory.backends.oci_bucket import OCIBucketBackend
from locus.memory.backends.opensearch import OpenSearchBackend
from locus.memory.backends.s3 import S3Backend

#: Number of names on a page of a listing, instead of 1,000.
PAGE = 7


class Objects:
    """Objects by name, with their write times."""

    def __init__(self) -> None:
        self.kept: dict[str, tuple[bytes, datetime]] = {}

    def put(self, name: str, data: bytes) -> None:
        self.kept[name] = (data, datetime.now(UTC))

    def page(self, begin: str, cursor: str | None, delimiter: str | None) -> tuple[list[str], list[str], str | None]:
        """Return a page's names, the common prefixes up to the delimiter, and the start of the next page."""
        entries: dict[str, bool] = {}
        for name in sorted(self.kept):
            if name.startswith(begin):
                inside = delimiter is not None and delimiter in name[len(begin) :]
                entries[begin + name[len(begin) :].split("/")[0] + "/" if inside else name] = inside
        names = [name for name in entries if cursor is None or name >= cursor]
        page, more = names[:PAGE], names[PAGE] if len(names) > PAGE else None
        return [one for one in page if not entries[one]], [one for one in page if entries[one]], more


class S3Client:
    """boto3's client of S3, whose times have a resolution of one second."""

    def __init__(self, objects: Objects, error: type[Exception]) -> None:
        self._objects = objects
        self._error = error
        self.closed = False

    def head_bucket(self, Bucket: str) -> None:
        """Report that the bucket exists."""

    def put_object(self, Bucket: str, Key: str, Body: bytes, ContentType: str) -> None:
        self._objects.put(Key, Body)

    def get_object(self, Bucket: str, Key: str) -> dict[str, Any]:
        if Key not in self._objects.kept:
            raise self._error({"Error": {"Code": "NoSuchKey"}}, "GetObject")
        return {"Body": io.BytesIO(self._objects.kept[Key][0])}

    def list_objects_v2(
        self,
        Bucket: str,
        Prefix: str,
        Delimiter: str | None = None,
        MaxKeys: int = 1000,
        ContinuationToken: str | None = None,
    ) -> dict[str, Any]:
        assert MaxKeys <= 1000
        names, folders, more = self._objects.page(Prefix, ContinuationToken, Delimiter)
        return {
            "Contents": [
                {"Key": name, "LastModified": self._objects.kept[name][1].replace(microsecond=0)} for name in names
            ],
            "CommonPrefixes": [{"Prefix": folder} for folder in folders],
            "IsTruncated": more is not None,
            **({} if more is None else {"NextContinuationToken": more}),
        }

    def close(self) -> None:
        self.closed = True


class OCIClient:
    """OCI's ``ObjectStorageClient``."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def get_bucket(self, **_: Any) -> None:
        """Report that the bucket exists."""

    def put_object(self, *, object_name: str, put_object_body: bytes, **_: Any) -> None:
        self._objects.put(object_name, put_object_body)

    def get_object(self, *, object_name: str, **_: Any) -> Any:
        if object_name not in self._objects.kept:
            raise RuntimeError("{'status': 404, 'code': 'ObjectNotFound'}")
        return SimpleNamespace(data=SimpleNamespace(content=self._objects.kept[object_name][0]))

    def list_objects(
        self,
        *,
        namespace_name: str,
        bucket_name: str,
        prefix: str,
        limit: int,
        start: str | None = None,
        delimiter: str | None = None,
        fields: str = "name",
        retry_strategy: Any = None,
    ) -> Any:
        assert limit <= 1000
        names, folders, more = self._objects.page(prefix, start, delimiter)
        found = [SimpleNamespace(name=name, time_modified=self._objects.kept[name][1]) for name in names]
        return SimpleNamespace(data=SimpleNamespace(objects=found, prefixes=folders or None, next_start_with=more))


class OpenSearchClient:
    """``AsyncOpenSearch``, with the limits of an index: 10,000 hits in all, and ids of 512 bytes."""

    def __init__(self) -> None:
        self.documents: dict[str, dict[str, Any]] = {}
        self.indices = self
        self._made = False

    async def create(self, index: str, body: dict[str, Any]) -> None:
        self._made = True

    async def exists(self, index: str, id: str | None = None) -> bool:
        return self._made if id is None else id in self.documents

    async def index(self, index: str, id: str, body: dict[str, Any], refresh: bool) -> None:
        assert 0 < len(id.encode()) <= 512
        self.documents[id] = copy.deepcopy(body)

    async def get(self, index: str, id: str) -> dict[str, Any]:
        if id not in self.documents:
            raise LookupError("NotFoundError(404)")
        return {"_source": copy.deepcopy(self.documents[id])}

    async def search(self, index: str, body: dict[str, Any]) -> dict[str, Any]:
        assert body["from"] + body["size"] <= 10_000, "Result window is too large"
        newest = sorted(self.documents.values(), key=lambda one: str(one["updated_at"]), reverse=True)
        page = newest[body["from"] : body["from"] + body["size"]]
        return {"hits": {"hits": [{"_source": {"thread_id": one["thread_id"]}} for one in page]}}

    async def close(self) -> None: ...


def s3(monkeypatch: pytest.MonkeyPatch) -> tuple[S3Backend, Objects]:
    """Locus' checkpointer on S3, and the objects in its bucket."""

    class ClientError(Exception):
        def __init__(self, response: dict[str, Any], operation: str) -> None:
            super().__init__(response["Error"]["Code"])
            self.response = response

    exceptions = ModuleType("botocore.exceptions")
    exceptions.ClientError = ClientError  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "botocore", ModuleType("botocore"))
    monkeypatch.setitem(sys.modules, "botocore.exceptions", exceptions)
    objects = Objects()
    return S3Backend("bucket", _client=S3Client(objects, ClientError)), objects


def oci() -> tuple[OCIBucketBackend, Objects]:
    """Locus' checkpointer on OCI Object Storage, and the objects in its bucket."""
    objects = Objects()
    backend = OCIBucketBackend("bucket", "namespace", retry_strategy=object())
    backend._client = OCIClient(objects)  # type: ignore[assignment]
    return backend, objects


def opensearch() -> tuple[StorageBackendAdapter, OpenSearchClient]:
    """Locus' checkpointer on OpenSearch, and the documents in its index."""
    backend, client = OpenSearchBackend(), OpenSearchClient()
    backend._client = client  # type: ignore[assignment]
    return StorageBackendAdapter(backend), client
