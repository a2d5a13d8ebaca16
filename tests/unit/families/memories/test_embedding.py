"""The name of a model is the one that is given, or that the embedder has."""

from __future__ import annotations

from typing import Any

import pytest
from locus.rag.embeddings.cohere import CohereEmbeddings
from locus.rag.embeddings.oci import OCIEmbeddings
from locus.rag.embeddings.openai import OpenAIEmbeddings

from locus_mysql import MySQLMemory
from locus_mysql.families.memories.embedding import EmbeddingOptions
from locus_mysql.integrations.langgraph import AsyncMySQLStore
from locus_mysql.memory import HashingEmbedder

#: No server listens there; these tests need none.
DSN = "mysql://nobody@127.0.0.1:1/none"


class Embedder:
    def __init__(self, **names: Any) -> None:
        self.__dict__.update(names)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[1.0] for _ in texts]


def plain(texts: list[str]) -> list[list[float]]:
    return [[1.0] for _ in texts]


@pytest.mark.parametrize(
    ("embed", "name"),
    [
        (Embedder(model="small-3").embed_documents, "small-3"),
        (Embedder(model=5, model_name="mini").embed_documents, "mini"),
        (Embedder(model_id="titan").embed_documents, "titan"),
        (Embedder().embed_documents, ""),
        (plain, ""),
        (lambda texts: plain(texts), ""),
        (HashingEmbedder(8), HashingEmbedder(8).model),
    ],
)
def test_the_embedders_name_is_the_default(embed: Any, name: str) -> None:
    assert EmbeddingOptions(dims=1, embed=embed).model == name
    assert EmbeddingOptions(dims=1, embed=embed, model="mine").model == "mine"
    store = AsyncMySQLStore(DSN, index={"dims": 1, "embed": embed})
    assert store._items._operations.options.model == name
    store = AsyncMySQLStore(DSN, index={"dims": 1, "embed": embed, "model": "mine"})  # type: ignore[typeddict-unknown-key]
    assert store._items._operations.options.model == "mine"


@pytest.mark.parametrize(
    ("embedder", "name"),
    [
        (lambda: OpenAIEmbeddings(model="text-embedding-3-small", api_key="none"), "text-embedding-3-small"),
        (lambda: OCIEmbeddings(model_id="cohere.embed-english-v3.0"), "cohere.embed-english-v3.0"),
        (lambda: CohereEmbeddings(model="embed-english-v3.0", api_key="none"), "embed-english-v3.0"),
    ],
)
def test_locus_embedders_have_a_name(embedder: Any, name: str) -> None:
    assert MySQLMemory(DSN, embedder=embedder())._operations.items.options.model == name
