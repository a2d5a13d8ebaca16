"""What the checksums of rows cover beside the payload: the `Place` of a checkpoint's row and of a write's. No I/O."""

from __future__ import annotations

import zlib

from .sealed import Place


def version_place(
    thread: int, version_key: bytes, parent_key: bytes | None, needs: int, metadata_checksum: int | None
) -> Place:
    """The place of a checkpoint's row.

    Args:
        thread: The thread's checksum.
        version_key: The checkpoint's key, which stands for its namespace and id.
        parent_key: The parent's.
        needs: What it needs of its parent.
        metadata_checksum: See `text_checksum`.
    """
    columns = f"{needs} {metadata_checksum}".encode()
    return Place(thread, zlib.crc32(columns, zlib.crc32(version_key + (parent_key or b""))))


def write_place(thread: int, version_key: bytes, task_id: str, idx: int, channel: str, task_path: str) -> Place:
    """The place of a write's row.

    Args:
        thread: The thread's checksum.
        version_key: The key of the checkpoint at which it is.
        task_id: The task.
        idx: The write's index among those of the task.
        channel: Where it goes to.
        task_path: The task's path.
    """
    columns = f"{idx} {len(task_id)} {len(channel)} {task_id}{channel}{task_path}".encode("utf-8", "surrogatepass")
    return Place(thread, zlib.crc32(columns, zlib.crc32(version_key)))


def text_checksum(text: str | None) -> int | None:
    """The checksum of a text as the server's CRC32() computes it; None for None."""
    return None if text is None else zlib.crc32(text.encode("utf-8", "surrogatepass"))
