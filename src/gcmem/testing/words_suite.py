"""What every word index must do; a store without one passes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gcmem.protocols import Store
from gcmem.testing.store_harness import EVERYTHING, START, StoreHarness, chunk
from gcmem.types import ChunkFilter, Scope

SAID = {
    "code": "The primary moved to db-eu-03 last night.",
    "sibling": "The replica stays on db-us-03.",
    "stem": "Our releases are going out on Fridays.",
    "number": "The invoice is over 4711 euros.",
    "accent": "We met at the Café Été.",
    "german": "Ich wohne seit März in München.",
    "chinese": "我上个月搬到了上海。",
    "japanese": "先週、東京に引っ越しました。",
    "korean": "저는 부산에 살아요.",
    "arabic": "أسكن الآن في القاهرة",
    "noise": "Nothing of that kind here, just rain.",
}


class WordsSuite(StoreHarness):
    """Requirements on a word index: it finds what shares words, and agrees with the log."""

    def by_words(
        self, store: Store, question: str, where: ChunkFilter = EVERYTHING, k: int = 100
    ) -> list[str]:
        """Returns the texts that the words of a question find, best first."""
        assert store.words is not None
        hits = store.words.search(question, k=k, where=where)
        assert [score for _, score in hits] == sorted((s for _, s in hits), reverse=True)
        assert all(score > 0 for _, score in hits)
        chunks = store.log.get([chunk_id for chunk_id, _ in hits])
        return [chunks[chunk_id].text for chunk_id, _ in hits]

    @pytest.mark.parametrize(
        ("question", "expected"),
        [
            ("What runs on db-eu-03?", "code"),
            ("When was the last release?", "stem"),
            ("Which invoice has 4711 in it?", "number"),
            ("Where is the cafe ete?", "accent"),
            ("Who lives in Munchen?", "german"),
            ("你现在住在上海吗?", "chinese"),
            ("東京ですか?", "japanese"),
            ("부산 어때요?", "korean"),
            ("هل القاهرة كبيرة؟", "arabic"),
        ],
    )
    def test_words_find_what_they_name(self, store: Store, question: str, expected: str) -> None:
        """Codes, numbers, other forms of a word, accents, scripts with and without spaces."""
        if store.words is None:
            return
        self.put(store, *(chunk(text) for text in SAID.values()))
        assert self.by_words(store, question)[0] == SAID[expected]

    def test_a_question_of_words_that_nobody_said_finds_nothing(self, store: Store) -> None:
        """There is no hit without a shared word, not even in an empty store."""
        if store.words is None:
            return
        assert self.by_words(store, "zebra") == []
        self.put(store, chunk("tea"), chunk("coffee"))
        assert self.by_words(store, "zebra?") == []
        assert self.by_words(store, "???") == []

    def test_speaker_and_date_are_words_too(self, store: Store) -> None:
        """A question may name who said something, or when."""
        if store.words is None:
            return
        self.put(store, chunk("tea", speaker="Caroline"), chunk("tea", speaker="Mel", day=70))
        assert store.words.search("Caroline", k=5, where=EVERYTHING)
        assert len(store.words.search("What about March?", k=5, where=EVERYTHING)) == 1
        assert self.by_words(store, "Caroline") == ["tea"]

    def test_words_obey_filters(self, store: Store) -> None:
        """Scope, both times and metadata, with at most k hits."""
        if store.words is None:
            return
        self.put(
            store,
            chunk("tea one", day=1, user="ana", metadata={"kind": "x"}),
            chunk("tea two", day=2, user="ana", recorded_day=9),
            chunk("tea three", day=3, user="bob"),
        )
        ana = Scope(user_id="ana")
        assert sorted(self.by_words(store, "tea")) == ["tea one", "tea three", "tea two"]
        assert sorted(self.by_words(store, "tea", ChunkFilter(scope=ana))) == ["tea one", "tea two"]
        early = ChunkFilter(as_of=START + timedelta(days=1))
        assert self.by_words(store, "tea", early) == ["tea one"]
        late = ChunkFilter(after=START + timedelta(days=2))
        assert self.by_words(store, "tea", late) == ["tea three"]
        known = ChunkFilter(known_at=START + timedelta(days=5), scope=ana)
        assert self.by_words(store, "tea", known) == ["tea one"]
        kind = ChunkFilter(metadata=(("kind", "x"),))
        assert self.by_words(store, "tea", kind) == ["tea one"]
        assert len(self.by_words(store, "tea", k=2)) == 2

    def test_equal_scores_come_newest_first(self, store: Store) -> None:
        """Among equal scores, the chunk stored last comes first."""
        if store.words is None:
            return
        stored = self.put(store, *(chunk("tea") for _ in range(40)))
        hits = store.words.search("tea", k=3, where=EVERYTHING)
        assert [chunk_id for chunk_id, _ in hits] == [c.id for c in reversed(stored[-3:])]

    def test_what_one_user_says_does_not_change_what_another_finds(self, store: Store) -> None:
        """Rarity and length are counted among the chunks that match, never over all users."""
        if store.words is None:
            return
        self.put(store, *(chunk(text, user="ana") for text in SAID.values()))
        ana = ChunkFilter(scope=Scope(user_id="ana"))
        before = store.words.search("db-eu-03 rain release", k=9, where=ana)
        self.put(store, *(chunk(f"rain {n} release", user="bob") for n in range(50)))
        after = store.words.search("db-eu-03 rain release", k=9, where=ana)
        assert [i for i, _ in after] == [i for i, _ in before]
        assert [s for _, s in after] == pytest.approx([s for _, s in before])

    def test_words_see_what_was_added_and_erased(self, store: Store, other: Store) -> None:
        """The word index never lags behind the log, whoever wrote."""
        if store.words is None:
            return
        first, _ = self.put(store, chunk("tea one"), chunk("tea two"))
        assert sorted(self.by_words(store, "tea")) == ["tea one", "tea two"]
        self.put(other, chunk("tea three"))
        other.delete([first.id])
        assert sorted(self.by_words(store, "tea")) == ["tea three", "tea two"]
        store.words.rebuild()
        assert sorted(self.by_words(store, "tea")) == ["tea three", "tea two"]

    def test_many_chunks_are_ranked_like_a_few(self, store: Store) -> None:
        """The rarest shared word decides, among thousands of chunks."""
        if store.words is None:
            return
        self.put(store, *(chunk(f"note {n} about tea and topic {n % 7}") for n in range(2000)))
        self.put(store, chunk("note about the marzipan and tea"))
        assert self.by_words(store, "note about marzipan", k=5)[0].endswith("marzipan and tea")
        assert len(self.by_words(store, "note 1234", k=5)) == 5
        assert "1234" in self.by_words(store, "note 1234", k=5)[0]
