"""Working memory: variables, task state and notes of the current session."""
