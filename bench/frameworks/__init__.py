"""Conversations of other frameworks: append and load by number of turns, beside each framework's own stores.

A turn is a question of 200 bytes and an answer of 800, in the framework's own types. Each contestant has a conversation
in its own database. A round appends one turn to each and loads the whole conversation, with every contestant, in a
shuffled order; the first contestant of a framework is this package. "Stored" are the bytes in the columns of all rows,
"files" the size of the tables' files with indexes. Every commit on MySQL is durable, and connections to it use TLS.

`contestants` defines what a module of a framework provides and lists the frameworks; `measurement` runs them.
"""

from .measurement import PAGE, measure, table

__all__ = ["PAGE", "measure", "table"]
