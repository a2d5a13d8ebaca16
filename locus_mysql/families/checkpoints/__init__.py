"""What a checkpoint is, and what can be done with it."""
