"""Checkpoints of thread states, stored as deltas: every operation on them, and the store of plain dicts.

Imports `families/inspection`, and the layers below. Operations are generators that do no I/O.
Begin with `store`, which has the classes and lists the parts, then `saving` and `loading`; `coding` has the deltas.
"""
