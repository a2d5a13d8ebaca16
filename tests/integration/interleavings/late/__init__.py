"""The calls of every family whose packets `test_late.py` delays; a module each."""
