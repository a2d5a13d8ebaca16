"""The inspector's pages: HTML that works without JavaScript, from `templates`, with the files in `static`.

A module for each group of pages. They show what `locus_mysql.inspection.Inspector` returns, and use no SQL. Begin
with `threads`, then `common` and `rendering`.
"""
