"""What all families share of the form in which content is stored: frames, and digests of lists that grow. No I/O.

Imports `errors` only. Begin with `framing`.
"""
