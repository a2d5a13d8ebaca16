"""The one engine of copies, exports and imports: units are read from a source and written to a target.

Imports `runtime` and the layers below, and no framework. Begin with `engine`; `family_pages` makes a family a source
or target, `jsonl` a file. Sources of a framework are in its folder in `integrations`.
"""
