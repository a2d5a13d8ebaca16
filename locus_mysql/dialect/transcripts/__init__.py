"""The SQL of transcripts (the family `transcripts`): conversations of frameworks, as ordered items.

Imports only `locus_mysql.dialect`. Begin with `tables`, then `dialect`, which brings the statements together;
`writing` has the statement that begins each write.
"""
