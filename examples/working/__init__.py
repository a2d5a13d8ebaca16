"""A session that survives the death of its process, and of its Redis."""
