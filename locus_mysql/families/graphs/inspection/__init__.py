"""The inspection of graphs' threads: generators that read and change them, and do no I/O.

`threads` has the `ThreadSource` and the `ThreadChanges` of `families/inspection/sources`; `graph_state`, `turns` and
`previews` turn stored values into what is shown. Begin with `threads`.
"""
