"""The inspection of graphs' threads: generators that read and change them, and do no I/O.

Implements the protocols of `families/inspection/sources`: `threads` has `ThreadSource`, `changes` has `ThreadChanges`.
`graph_state`, `token_usage` and `values_as_json` are pure functions that turn stored values into what is shown. Begin
with `threads`.
"""
