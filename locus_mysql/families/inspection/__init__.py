"""Code shared by the inspection of all families: records, protocols of threads, cursors, stored bytes as JSON.

Imports `runtime` and the layers below, and no family. Begin with `owners`, which shows a family's owners as threads,
from the declaration of its tables; `owner_rows` reads their rows, `statistics` measures them, and `changes` deletes and
copies them. `records` has the values that are returned, and `conversation` recognises messages in states.
"""
