"""The command line: a module for each group of commands.

The outermost layer: it may import every other one; only this one imports rich. Families come from the registry and
are not named here. Begin with `main`, which registers the commands; `arguments` has their shared code, `inspection` the
commands that show and delete threads.
"""
