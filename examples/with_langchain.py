"""LangChain: a vector store that repeats what is no longer true, and the same one with gcmem.

pip install 'gcmem[langchain]'; python examples/with_langchain.py
"""

from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore

from gcmem import Memory
from gcmem.integrations.langchain import (
    GCMemEmbeddings,
    GCMemRetriever,
    TemporalDominance,
    memory_tools,
)
from gcmem.times import parse_time

QUESTION = "Which database does the shop run on?"
NOTES = [
    ("2025-01-09", "The shop runs on MySQL."),
    ("2025-02-03", "Backups of the shop's database are kept for 30 days."),
    ("2025-03-20", "Reminder: the shop's database is MySQL."),
    (
        "2025-09-15",
        "The migration is done: the shop no longer runs on MySQL, it runs on PostgreSQL.",
    ),
]


def main() -> None:
    """Asks the same question in three ways."""
    store = InMemoryVectorStore(GCMemEmbeddings())
    store.add_documents([Document(text, metadata={"date": day}) for day, text in NOTES])
    plain = store.as_retriever(search_kwargs={"k": 4})
    show("plain retriever", plain.invoke(QUESTION))
    show("gcmem: TemporalDominance around it", TemporalDominance().around(plain).invoke(QUESTION))

    with Memory(":memory:") as memory:
        for day, text in NOTES:
            memory.add(text, user_id="shop", at=parse_time(f"{day}T09:00:00Z"))
        retriever = GCMemRetriever(memory=memory, user_id="shop")
        show("gcmem: GCMemRetriever", retriever.invoke(QUESTION))
        june = parse_time("2025-06-01T00:00:00Z")
        show("gcmem: the same as of June", retriever.invoke(QUESTION, as_of=june))
        _, search = memory_tools(memory, user_id="shop")
        print(f"gcmem: the tool {search.name}\n{search.invoke({'query': QUESTION})}")


def show(title: str, documents: list[Document]) -> None:
    """Prints documents under a title."""
    print(title)
    for document in documents:
        print("  ", document.page_content)


if __name__ == "__main__":
    main()
