"""Layouts of the tables: ``fingerprints.json`` has a digest of the CREATE TABLE statements of each family's layouts.

``python -m tests.layouts`` writes it; see `__main__`.
"""
