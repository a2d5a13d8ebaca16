"""Strands Agents' own tests of storages and session repositories, run with ours in place of its own."""
