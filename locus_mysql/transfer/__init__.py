"""The one engine of copies, exports and imports: units are read from a source and written to a target.

Imports `runtime` and the layers below. Begin with `engine`; `files` has the lines of files, and files
that are resumed. Sources and targets are those of rows and of files of them, in the layer `records`, and those of a
framework, in its folder in `integrations`.
"""
