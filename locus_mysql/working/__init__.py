"""Working memory."""
