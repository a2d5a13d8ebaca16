"""Programs that show what locus-mysql does; `ci/demo` runs them.

Each folder is a chapter that can be read by itself: `demo` has its sections, `agents` its agents, `worker` the other
process. They use the package as an application does, on a private server of `ci` if none is given. Begin with
`agents/demo`; `chapters` lists the chapters.
"""
