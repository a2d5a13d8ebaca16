"""What all families share of what they store. Imports `transfer` and the layers below, and no family. No I/O.

`tables` declares a family's owners and parts, from which exports, imports, copies and changes of keys are derived:
`moving` has the records, `owner_reader` and `owner_writer` read and write them, and commands use `transfer` and
`files`. `ledger` has the tokens of writes, `framing` the bytes of contents, `log_digests` the digests of lists that
grow. Begin with `tables` and `ledger`.
"""
