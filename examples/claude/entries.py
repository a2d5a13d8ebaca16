"""Entries like those that the SDK sends to a session store, from a scripted conversation instead of a model."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from claude_agent_sdk import SessionKey, SessionStoreEntry, project_key_for_directory

DIRECTORY = "/srv/support"
SESSION = "6f9619ff-8b86-d011-b42d-00c04fc964ff"
KEY: SessionKey = {"project_key": project_key_for_directory(DIRECTORY), "session_id": SESSION}

#: The user's message and the answer of each turn.
TURNS: Sequence[tuple[str, str]] = (
    ("My router blinks red. What now?", "Hold its button for ten seconds, please."),
    ("It is green now.", "Good. What did it show before?"),
    ("I said so: it blinked red.", "Then it had lost its line, and has it back."),
)


def turn(number: int) -> list[SessionStoreEntry]:
    """Return the entries of a turn; the same ones whenever it is called, like a repeated batch."""
    question, answer = TURNS[number]
    asked, answered = _uuid(number, "user"), _uuid(number, "assistant")
    before = _uuid(number - 1, "assistant") if number else None
    return [_entry("user", question, asked, before), _entry("assistant", answer, answered, asked)]


def _entry(role: str, text: str, own: str, parent: str | None) -> SessionStoreEntry:
    entry: Any = {
        "parentUuid": parent,
        "isSidechain": False,
        "cwd": DIRECTORY,
        "sessionId": SESSION,
        "type": role,
        "message": {"role": role, "content": text},
        "uuid": own,
        "timestamp": "2026-11-23T09:00:00.000Z",
    }
    stored: SessionStoreEntry = entry
    return stored


def _uuid(number: int, role: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{SESSION}/{number}/{role}"))
