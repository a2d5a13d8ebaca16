"""Transcripts without a framework: the stores, and what they take and give."""

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
