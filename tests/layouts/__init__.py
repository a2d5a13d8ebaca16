"""Layouts of the released versions: fingerprints of their tables, and a small dump of each family's tables.

``fingerprints.json`` has, for each family, the numbers of its layouts with a digest of the tables; ``released`` has a
folder for each version with a dump for each family. ``python -m tests.layouts`` writes them; see `__main__`.
"""
