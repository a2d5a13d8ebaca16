"""The SQL of checkpoints: their tables, and every statement about them."""
