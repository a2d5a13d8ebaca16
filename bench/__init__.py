"""Benchmarks: this project beside Locus' other checkpointers and beside the floor, all in one run.

``python -m bench --dsn mysql://…`` measures everything and writes ``bench/report``. Each measurement is a module with
``measure(dsn, quick)``, which returns JSON values, and ``table(result)``, which returns Markdown. `gate` has the
figures that CI checks. `bench` may import the package, `ci` and `tests`. Begin with `__main__`, then `latency` and
`floor`; `targets` has the target figures.
"""

import os
from pathlib import Path

# matplotlib writes a list of fonts, by default into the home folder. The benchmarks write only into the checkout.
os.environ.setdefault("MPLCONFIGDIR", str(Path(__file__).resolve().parent.parent / ".cache" / "matplotlib"))
# NumPy computes products in one thread, so that they compare with others. It reads this variable when imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
