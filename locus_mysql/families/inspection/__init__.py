"""Code shared by the inspection of all families: records, protocols of threads, cursors, stored bytes as JSON.

Imports `runtime` and the layers below, and no family. Begin with `sources`, the protocol of a family with threads,
`owners`, which follows it from the declaration of a family's tables, and `records`, the values that they return;
`conversation` recognises messages in states.
"""
