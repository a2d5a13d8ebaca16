"""What all families share of what they store: frames of contents, digests of lists that grow, the ledger of writes.

Begin with `framing` and `ledger`. No I/O.
"""
