"""The inspection of thread states: generators that read and change them, and do no I/O.

Implements the protocols of `families/inspection/sources`: `threads` has `ThreadSource` and `ThreadChanges`,
`statistics` measures what a tenant stores. Begin with `threads`.
"""
