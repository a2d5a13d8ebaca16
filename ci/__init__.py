"""The scripts that developers and continuous integration run, and their shared modules.

`ci/test` runs every check, `ci/bench` the benchmarks, `ci/demo` the examples; `ci/mysql` and `ci/cluster` provide
servers. Begin with `ci/test`. `local_server`, `memory` and `debian_packages` use only the standard library, as
`ci/mysql` runs them before anything is installed.
"""
