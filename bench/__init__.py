"""Benchmarks: this project beside Locus' other checkpointers and beside the floor, all in one run.

``python -m bench --dsn mysql://…`` measures all and writes ``bench/report``. Each measurement is a module with
``measure(dsn, quick)``, whose result JSON can hold, and ``table(result)``, which makes Markdown of it.
"""
