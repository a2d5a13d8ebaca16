"""The SQL of checkpoints: their tables, and all statements about them."""
