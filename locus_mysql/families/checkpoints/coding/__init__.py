"""States as text, and text as deltas. No I/O, no SQL.

`codec` encodes a state field by field and recognises a list that continues another one, `delta` decides what a save
stores and puts it together again, `payload` makes the bytes of a row. Begin with `delta`.
"""
