from __future__ import annotations

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor

from gcmem import Memory
from tests.conftest import day


def test_threads_share_one_memory(memory: Memory) -> None:
    def work(number: int) -> int:
        memory.add(f"slot{number}=1", user_id="ana", at=day(number))
        return len(memory.search(f"slot{number}", user_id="ana", k=100).candidates)

    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(work, range(60)))
    assert min(counts) >= 1
    assert len(memory.get_all(user_id="ana")) == 60


def test_searches_and_writes_at_once_never_disturb_each_other(memory: Memory) -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            adding = pool.submit(
                lambda: [memory.add(f"slot{n}=1", user_id=f"u{n % 7}") for n in range(400)]
            )
            searching = [
                pool.submit(lambda: [memory.search("slot", k=5) for _ in range(150)])
                for _ in range(3)
            ]
            adding.result()
            for future in searching:
                future.result()
    finally:
        sys.setswitchinterval(before)
    assert len(memory.search("slot1", k=1000).candidates) == 400


def test_async_twins_do_what_the_methods_do(memory: Memory) -> None:
    async def story() -> str:
        await memory.aadd("diet=vegan", user_id="ana", at=day(1))
        await asyncio.gather(
            *(memory.aadd(f"city={n}", user_id="ana", at=day(n)) for n in range(5))
        )
        result = await memory.asearch("city", user_id="ana")
        answer = await memory.aask("diet=vegan", user_id="ana")
        assert [s.witness.chunk.text for s in result.shadows] == ["city=4"] * 4
        return answer.text

    assert asyncio.run(story()) == "diet=vegan"
