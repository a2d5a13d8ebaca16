"""The inspection of thread states: generators that read and change them, and do no I/O.

`threads` has what the family overrides of `families/inspection/owners`; `previews` reads what a list shows of a state.
"""
