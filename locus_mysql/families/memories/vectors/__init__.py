"""Embeddings: how they are stored, compared and kept in memory. Knows nothing of what is embedded."""
