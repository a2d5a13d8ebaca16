"""The families of tables: checkpoints, graphs, long-term memories, working memory, transcripts.

No family imports another family. Imports `runtime` and the layers below, and no framework. A family has the same file
names for the same jobs; `inspection` has the code that families with threads share. Begin with `family`, the protocol,
and `registry`, the list of all; docs/design/adding-a-family.md shows how to add one.
"""
