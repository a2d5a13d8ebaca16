"""MySQL's protocol after the login. Imports no client library.

`literals`, `commands`, `receive_buffer`, `results` and `values` convert statements and answers, without I/O.
`adapter` is the base of connections; `blocking`, `awaited` (with `command_protocol`) and `threaded` are the three
ways of waiting. `session` sets up a new session; `sockets` and `deadlines` bound and drop sockets. Begin with
`results`.
"""
