"""The warning that a save went into another thread: `ThreadBranched`."""

from __future__ import annotations


class ThreadBranched(UserWarning):
    """A save went to a new thread, because another process had saved to its own (``on_conflict="branch"``).

    Args:
        thread_id: The thread that the run loaded.
        branch: The thread that it was saved to, and that its later saves go to.
        expected: The id of the checkpoint that the run assumed to be the newest, if there is one.
        newest: The id of the checkpoint that is the newest of the thread.
    """

    def __init__(self, thread_id: str, branch: str, expected: str | None, newest: str | None) -> None:
        super().__init__(thread_id, branch, expected, newest)
        self.thread_id = thread_id
        self.branch = branch
        self.expected = expected
        self.newest = newest

    def __str__(self) -> str:
        return (
            f"Another process saved to thread {self.thread_id!r} meanwhile (its newest checkpoint is {self.newest!r}), "
            f"so this turn was saved to thread {self.branch!r}."
        )
