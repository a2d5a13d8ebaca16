"""Commands that show and delete threads: ``threads``, ``show``, ``history``, ``diff``, ``search``, ``stats``, ``rm``.

A module for each command. They print what `locus_mysql.inspection.Inspector` returns, and use no SQL. Begin with
`command`, which all of them share; `screen` writes tables or JSON, `render_messages` writes conversations.
"""
