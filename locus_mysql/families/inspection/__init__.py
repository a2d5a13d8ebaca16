"""Code shared by the inspection of all families: records, protocols of threads, cursors, stored bytes as JSON.

Imports `runtime` and the layers below, and no family. Begin with `sources`, the protocols that a family with threads
implements, and `records`, the values that they return; `conversation` recognises messages in states.
"""
