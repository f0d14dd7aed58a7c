"""LangChain's own standard tests, for everything of which they have one."""

from __future__ import annotations

from functools import cache
from typing import Any

from langchain_tests.integration_tests import (
    EmbeddingsIntegrationTests,
    RetrieversIntegrationTests,
    ToolsIntegrationTests,
)
from langchain_tests.unit_tests import EmbeddingsUnitTests, ToolsUnitTests

from gcmem import Memory
from gcmem.integrations.langchain import AddMemory, GCMemEmbeddings, GCMemRetriever, SearchMemory
from tests.frameworks.story import QUESTION, told_memory


@cache
def memory_of_five() -> Memory:
    """The story, in which one fact is stale, and two more: as many live ones as the suite asks."""
    memory = told_memory()
    memory.add("I work as a nurse.", user_id="ana")
    memory.add("My cat is called Miro.", user_id="ana")
    return memory


class TestRetriever(RetrieversIntegrationTests):
    @property
    def retriever_constructor(self) -> type[GCMemRetriever]:
        return GCMemRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"memory": memory_of_five(), "user_id": "ana"}

    @property
    def retriever_query_example(self) -> str:
        return QUESTION


class TestEmbeddingsUnit(EmbeddingsUnitTests):
    @property
    def embeddings_class(self) -> type[GCMemEmbeddings]:
        return GCMemEmbeddings


class TestEmbeddings(EmbeddingsIntegrationTests):
    @property
    def embeddings_class(self) -> type[GCMemEmbeddings]:
        return GCMemEmbeddings


class _Tool:
    @property
    def tool_constructor_params(self) -> dict[str, Any]:
        return {"memory": memory_of_five(), "user_id": "ana"}


class _Add(_Tool):
    tool_constructor = AddMemory
    tool_invoke_params_example = {"text": "I play the cello."}  # noqa: RUF012


class _Search(_Tool):
    tool_constructor = SearchMemory
    tool_invoke_params_example = {"query": QUESTION}  # noqa: RUF012


class TestAddUnit(_Add, ToolsUnitTests):
    pass


class TestAdd(_Add, ToolsIntegrationTests):
    pass


class TestSearchUnit(_Search, ToolsUnitTests):
    pass


class TestSearch(_Search, ToolsIntegrationTests):
    pass
