"""The one engine of copies, exports and imports: units are read from a source and written to a target.

Imports `runtime` and the layers below. Begin with `engine`; `jsonl` has the lines of files and `part_file` files that
are resumed. Rows of families are sources and targets in `records/transfer.py`, files in `records/files.py`, and what a
framework has in its folder in `integrations`.
"""
