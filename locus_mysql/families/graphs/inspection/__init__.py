"""The inspection of graphs' threads: generators that read and change them, and do no I/O.

`threads` has what the family overrides of `families/inspection/owners`; `graph_state`, `turns` and
`previews` turn stored values into what is shown. Begin with `threads`.
"""
