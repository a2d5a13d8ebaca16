"""MySQL's protocol after the login. Imports no client library.

`literals` and `results` convert statements and answers, without I/O. `adapter` is the base of connections; `blocking`,
`awaited` and `threaded` are the three ways of waiting. `session` sets up a new session; `sockets` limits and closes
sockets. Begin with `results`.
"""
