"""Commands that show and delete threads: ``threads``, ``show``, ``history``, ``diff``, ``search``, ``stats``, ``rm``.

A module for each command. They print what `locus_mysql.inspection.Inspector` returns, and use no SQL. Begin with
`command`, their shared code; `screen` writes tables or JSON, `render_messages` writes conversations.
"""
