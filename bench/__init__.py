"""Benchmarks: this project beside Locus' other checkpointers and beside the floor, all in one run.

``python -m bench --dsn mysql://…`` measures all and writes ``bench/report``. Each measurement is a module with
``measure(dsn, quick)``, whose result JSON can hold, and ``table(result)``, which makes Markdown of it.
"""

import os
from pathlib import Path

# matplotlib keeps a list of fonts, by default in the home folder; nothing is written outside of the checkout.
os.environ.setdefault("MPLCONFIGDIR", str(Path(__file__).resolve().parent.parent / ".cache" / "matplotlib"))
# NumPy's products are compared by one thread each; this is read when NumPy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
