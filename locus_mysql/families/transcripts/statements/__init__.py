"""The SQL of transcripts. Begin with `tables`; `writing` has the statement that begins each write."""
