"""Programs that show what locus-mysql does; `ci/demo` runs them.

Each folder is a chapter that can be read by itself: `story` has its scenes, `agents` its agents, `worker` the other
process. They use the package as an application does, on a private server of `ci` if none is given. Begin with
`agents/story`; `chapters` lists the chapters.
"""
