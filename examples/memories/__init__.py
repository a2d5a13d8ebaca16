"""Facts told in one conversation and used in another."""
