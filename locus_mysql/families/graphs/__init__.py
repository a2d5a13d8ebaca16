"""The family of versioned checkpoints: every checkpoint of a thread, its values, and what tasks wrote on the way."""
