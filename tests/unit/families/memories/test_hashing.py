"""The embedder without a model has the properties on which users' tests rely."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base.embed import ensure_embeddings
from locus.rag.embeddings.base import EmbeddingProvider

from locus_mysql.errors import ConfigError, InvalidInput
from locus_mysql.memory import HashingEmbedder


def cosine(one: str, other: str, embedder: HashingEmbedder | None = None) -> float:
    first, second = (embedder or HashingEmbedder())([one, other])
    return math.fsum(a * b for a, b in zip(first, second, strict=True))


@given(st.lists(st.text()), st.integers(1, 40))
def test_every_text_has_an_embedding_of_length_1(texts: list[str], dims: int) -> None:
    made = HashingEmbedder(dims, pieces=(1, 3))(texts)
    assert len(made) == len(texts)
    for vector in made:
        assert len(vector) == dims
        assert math.isclose(math.hypot(*vector), 1)


def test_the_same_text_has_the_same_embedding_in_every_process_and_release() -> None:
    code = (
        "import json; from locus_mysql.memory import HashingEmbedder as E; print(json.dumps(E(8)(['Ada drinks tea'])))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    made = HashingEmbedder(8)(["Ada drinks tea"])
    assert json.loads(done.stdout) == made
    assert [round(value, 6) for value in made[0]] == EXPECTED


EXPECTED = [0.301511, -0.639602, 0.213201, 0.0, 0.0, 0.301511, 0.426401, 0.426401]


def test_texts_that_share_words_or_parts_of_them_are_near() -> None:
    asked = "What does Ada like to drink?"
    assert cosine(asked, "Ada drinks green tea") > 2 * max(0.05, cosine(asked, "The invoice of March is paid"))
    assert cosine("Kaffeetasse", "Kaffee") > 0.3
    assert cosine("GREEN Tea!", "green tea") == pytest.approx(1)
    assert abs(cosine("green tea", "bicycle")) < 0.2
    together = HashingEmbedder(pieces=(1, 2))
    assert cosine("我喜欢喝绿茶", "绿茶", together) > 0.3


def test_its_arguments_are_checked() -> None:
    for dims in (0, -1, 16_384, True, "8", 1.5):
        with pytest.raises(ConfigError, match="dims must be"):
            HashingEmbedder(dims)  # type: ignore[arg-type]
    for pieces in ((0, 1), (3, 2), (3,), "ab", (1, 1000), None):
        with pytest.raises(ConfigError, match="pieces must be"):
            HashingEmbedder(pieces=pieces)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="must be text, not int"):
        HashingEmbedder()([1])  # type: ignore[list-item]
    assert HashingEmbedder(16_383).dimension == 16_383


async def test_hashing_embedder_has_the_interface_of_locus_embedders() -> None:
    embedder = HashingEmbedder(16)
    assert isinstance(embedder, EmbeddingProvider)
    assert embedder.dimension == embedder.config.dimension == 16
    (vector,) = embedder(["tea"])
    assert (await embedder.embed("tea")).embedding == vector
    assert (await embedder.embed_query("tea")).embedding == vector
    many = await embedder.embed_documents(["tea", "milk"] * 100)
    assert [result.embedding for result in many] == embedder(["tea", "milk"] * 100)
    assert {result.model for result in many} == {embedder.model} == {"hashing-1-16-3-5"}
    assert embedder.capabilities.max_batch_size >= 1


async def test_hashing_embedder_is_accepted_as_langgraph_embeddings() -> None:
    embedder = HashingEmbedder(16)
    embeddings = ensure_embeddings(embedder)
    assert embeddings.embed_query("tea") == embedder(["tea"])[0]
    assert await embeddings.aembed_documents(["tea", "milk"]) == embedder(["tea", "milk"])


def test_hashing_embedder_needs_no_framework_and_no_numpy() -> None:
    code = """
import sys
sys.modules["numpy"] = None
from locus_mysql.memory import HashingEmbedder
HashingEmbedder()(["tea"])
assert not {"locus", "langgraph", "langchain_core"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
