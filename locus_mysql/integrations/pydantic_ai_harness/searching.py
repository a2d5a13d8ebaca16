"""Text search in memory files: scores and snippets as the framework's stores compute them. No I/O."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from pydantic_ai_harness.memory import MemorySearchMatch, MemorySearchResult

#: The result of a search for nothing, or with a limit that is not positive.
NOTHING = MemorySearchResult(matches=[], scanned=0, truncated=False)


async def search(
    files: Sequence[tuple[str, str]], query: str, *, prefix: str, limit: int, max_chars: int
) -> MemorySearchResult:
    """Search files for the words of a query, as substrings without regard to case.

    Yields to the event loop after each file, as scoring a large one takes milliseconds.

    Args:
        files: Paths and contents, in the order of their paths.
        query: The words.
        prefix: The start of every path, which is not searched.
        limit: The maximum number of matches.
        max_chars: The maximum number of characters of all paths, without the prefix, and snippets together.
    """
    terms = query.lower().split()
    scored: list[tuple[float, str, str]] = []
    for path, content in files:
        name, text = path.removeprefix(prefix).lower(), content.lower()
        score = float(sum(text.count(term) + 2 * name.count(term) for term in terms))
        if score:
            scored.append((score, path, content))
        await asyncio.sleep(0)
    scored.sort(key=lambda found: (-found[0], found[1]))
    matches: list[MemorySearchMatch] = []
    remaining = max_chars
    for score, path, content in scored[:limit]:
        remaining -= len(path) - len(prefix)
        if remaining <= 0:
            break
        snippet = _snippet(content, terms, remaining)
        remaining -= len(snippet)
        matches.append(MemorySearchMatch(path=path, snippet=snippet, score=score))
    return MemorySearchResult(matches=matches, scanned=len(files), truncated=len(scored) > len(matches))


def _snippet(content: str, terms: Sequence[str], max_chars: int) -> str:
    """Return the part of a text around the first match, with three dots where it was cut."""
    lower = content.lower()
    found = [offset for offset in (lower.find(term) for term in terms) if offset >= 0]
    end = min(len(content), max(0, min(found, default=0) - max_chars // 3) + max_chars)
    start = max(0, end - max_chars)
    snippet = content[start:end]
    dots = "." * min(3, len(snippet))
    if start:
        snippet = dots + snippet[len(dots) :]
    if end < len(content):
        snippet = snippet[: len(snippet) - len(dots)] + dots
    return snippet
