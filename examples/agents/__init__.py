"""Locus agents that remember, across processes and crashes."""
