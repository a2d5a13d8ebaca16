"""States as text, and text as deltas. No I/O."""
