"""What every family of stores shares."""
