"""The scripts that README, developers and continuous integration call, and the modules that these share.

`ci/test` runs every check, `ci/bench` the benchmarks, `ci/demo` the examples; `ci/mysql` and `ci/cluster` provide
servers. Begin with `ci/test`. `local_server`, `memory` and `debian_packages` use only the standard library, as
`ci/mysql` runs them before anything is installed.
"""
