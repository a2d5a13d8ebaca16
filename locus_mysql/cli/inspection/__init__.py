"""Commands that show and delete what is stored. They print what `locus_mysql.inspection.Inspector` returns.

Begin with `command`, their shared code; `screen` writes tables or JSON. `threads` finds threads, `show`
prints their states, `records` shows families without threads.
"""
