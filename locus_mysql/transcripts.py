"""Public names of transcripts, for use without a framework: stores, argument and result types, and errors."""

from .errors import NotFound, VersionConflict
from .families.transcripts.records import Fold, Header, Item, NewItem, Read, Transcript, TranscriptKey, Write, Written
from .families.transcripts.store import SyncTranscriptStore, TranscriptStore

__all__ = [
    "Fold",
    "Header",
    "Item",
    "NewItem",
    "NotFound",
    "Read",
    "SyncTranscriptStore",
    "Transcript",
    "TranscriptKey",
    "TranscriptStore",
    "VersionConflict",
    "Write",
    "Written",
]
