"""What did an agent know at a given time, and what changed? Answered in the terminal."""
