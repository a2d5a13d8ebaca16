"""The inspection of thread states: generators that read and change them, and do no I/O.

`threads` has what the family overrides of `families/inspection/owners`,
`statistics` measures what a tenant stores. Begin with `threads`.
"""
