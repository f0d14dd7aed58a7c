"""Processes that judge: killed in the middle, two at a time, ending, and what they leave behind."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

from gcmem.protocols import Ruling, Store
from gcmem.store.urls import open_store
from gcmem.types import Claim
from tests.conftest import day
from tests.laws.test_judging import (
    ENCODER,
    EVERYTHING,
    RuleJudge,
    Said,
    append,
    is_all_judged,
    judging_of,
    remembering,
    rows_of,
)
from tests.processes.test_erasing import copies

ROOT = Path(__file__).parents[2]
CHUNKS = 48

JUDGE = """
import sys, time
from contextlib import closing
from gcmem.judge import ahead
from gcmem.store.urls import open_store
from tests.laws.test_judging import ENCODER, RuleJudge, judging_of

location, holder, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
ahead.LEASE_S = float(sys.argv[4])
ahead.CHUNKS_PER_PAGE = 4

class Telling(RuleJudge):
    def ruling(self, older, newer):
        print(older.id, newer.id, flush=True)
        return super().ruling(older, newer)

    def rule(self, pairs, *, question=""):
        time.sleep(seconds)
        return super().rule(pairs)

with closing(open_store(location, encoder=ENCODER, stm_size=5)) as store:
    judging = judging_of(store, Telling())
    print("ready", flush=True)
    sys.stdin.readline()
    while judging.pending():
        judging.run(holder=holder, limit=6)
        judging.release(holder)
        time.sleep(0.02)
"""


@contextmanager
def judge(
    location: str | Path, *, holder: str = "", seconds: float = 0.005, lease_s: float = 60.0
) -> Iterator[subprocess.Popen[str]]:
    """A process that judges a store until nothing waits, and prints every pair that it reads.

    It begins when it gets a line.
    """
    with subprocess.Popen(
        [sys.executable, "-c", JUDGE, str(location), holder, str(seconds), str(lease_s)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def begin(*processes: subprocess.Popen[str]) -> None:
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()


def opened(location: str | Path) -> Store:
    return open_store(str(location), encoder=ENCODER, stm_size=5)


def stream(count: int = CHUNKS) -> list[Said]:
    """Messages about a few topics, some of which arrive late."""
    rng = random.Random(7)
    return [
        Said(
            f"my {rng.choice(('city', 'diet', 'port'))} is {n}. my lamp is {n % 3}.",
            rng.randrange(9),
        )
        for n in range(count)
    ]


def fill(location: str | Path) -> None:
    with closing(opened(location)) as store:
        append(store, stream())


def all_rows(location: str | Path) -> Counter[Any]:
    """Returns every verdict in a store, and checks that nothing waits any more."""
    with closing(opened(location)) as store:
        assert is_all_judged(store, judging_of(store))
        if "://" not in str(location):
            return rows_of(store)
    with psycopg.connect(str(location)) as connection:
        rows = connection.execute(
            "SELECT older, older_first, older_last, newer, newer_first, newer_last, judge, score, "
            "reason FROM gcmem_verdicts"
        ).fetchall()
    return Counter(rows)


@pytest.fixture(params=["sqlite", "postgres"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store with chunks that nobody has judged."""
    chosen = str(tmp_path / "m.db")
    if request.param == "postgres":
        chosen = request.getfixturevalue("postgres_url")
    fill(chosen)
    return chosen


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Counter[Any]:
    """The verdicts that one run without a break gives."""
    path = tmp_path_factory.mktemp("undisturbed") / "m.db"
    fill(path)
    with closing(opened(path)) as store:
        judging_of(store).run()
    rows = all_rows(path)
    shutil.rmtree(path.parent)
    assert len(rows) > CHUNKS
    return rows


def test_a_kill_loses_nothing_and_repeats_nothing(location: str, undisturbed: Counter[Any]) -> None:
    rng = random.Random(7)
    kills = 0
    for _ in range(5):
        with judge(location) as process:
            begin(process)
            assert process.stdout is not None
            for _ in range(rng.randint(1, 600)):
                if not process.stdout.readline():
                    break
            else:
                process.send_signal(signal.SIGKILL)
                process.wait()
                kills += 1
        with closing(opened(location)) as store:
            left = judging_of(store).pending()
    assert kills >= 2
    assert left < CHUNKS  # it went on where it had been killed
    with closing(opened(location)) as store:
        assert judging_of(store).run().judged == left
    assert all_rows(location) == undisturbed
    assert set(undisturbed.values()) == {1}


def test_two_processes_judge_everything_and_nothing_twice(
    location: str, undisturbed: Counter[Any]
) -> None:
    with judge(location, holder="one") as one, judge(location, holder="two") as two:
        begin(one, two)
        told = [process.communicate(timeout=60)[0].splitlines() for process in (one, two)]
    assert one.returncode == two.returncode == 0
    assert all(told), "each of them had its turn"
    assert len(told[0] + told[1]) == len({*told[0], *told[1]})
    assert all_rows(location) == undisturbed


def test_when_the_one_with_the_right_to_judge_dies_another_goes_on(
    location: str, undisturbed: Counter[Any]
) -> None:
    with judge(location, holder="one", seconds=0.3, lease_s=2.5) as one:
        begin(one)
        assert one.stdout is not None
        one.stdout.readline()  # so it has the right, and is in the middle of a page
        with closing(opened(location)) as store:
            judging = judging_of(store)
            assert judging.run(holder="two").judged == 0
            one.send_signal(signal.SIGKILL)
            one.wait()
            assert judging.run(holder="two").judged == 0  # nobody knows yet that it is dead
            assert eventually(lambda: judging.run(holder="two").judged > 0)
            assert judging.pending() == 0
    assert all_rows(location) == undisturbed


def eventually(condition: Callable[[], bool]) -> bool:
    ends_at = time.monotonic() + 30
    while time.monotonic() < ends_at:
        if condition():
            return True
        time.sleep(0.05)
    return False


ENDING = """
import sys, threading, time
import gcmem.defaults
from gcmem.judge import background
from tests.laws.test_judging import RuleJudge, every_statement, Memory, ENCODER

is_asleep = threading.Event()

class Asleep(RuleJudge):
    def rule(self, pairs, *, question=""):
        if pairs:
            is_asleep.set()
            time.sleep(600)
        return super().rule(pairs)

gcmem.defaults.ClaimDetector = every_statement
background.STOP_WAIT_S = 0.2
memory = Memory(sys.argv[1], encoder=ENCODER, judge=Asleep(), require_qualified=False)
memory.add(["my city is porto.", "my city is lyon."])
print(is_asleep.wait(30))
"""


def test_a_judge_that_sleeps_does_not_keep_the_process_alive(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    done = subprocess.run(
        [sys.executable, "-c", ENDING, str(path)],
        capture_output=True, text=True, cwd=ROOT, timeout=60, check=True,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("True\n", "")
    with closing(opened(path)) as store:
        assert store.log.count(EVERYTHING) == 2
        assert judging_of(store).pending() == 2


def test_forget_leaves_no_claim_no_verdict_and_no_word_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with remembering(path) as memory, warnings.catch_warnings():
        warnings.simplefilter("error")
        secrets = [
            memory.add(f"my city is {n}. secret number {n}.", user_id="ana", at=day(n))[0]
            for n in range(5)
        ]
        (other,) = memory.add("my city is 9.", user_id="ana", at=day(9))
        memory.judge()
        memory.search("my city", user_id="ana")
        said = "secret number 7"
        memory.confirm(secrets[0].id, other.id, by="secret number 8", reason=said)
        memory.pin(secrets[1].id, by="secret number 6")
        claims = memory.judging.claims_of(secrets)
        vectors = [
            claim.vector.astype(np.float16).tobytes()
            for found in claims.values()
            for claim in found[1:]
        ]
        assert copies(path) > 10
        assert all(vector in in_files(path) for vector in vectors)
        assert memory.forget(ids=[chunk.id for chunk in secrets]) == 5
        assert copies(path) == 0
        assert not any(vector in in_files(path) for vector in vectors)
        assert not any(chunk.id.encode() in in_files(path) for chunk in secrets)
        assert memory.erasing() is None
        assert rows_of(memory.store) == Counter()


def in_files(path: Path) -> bytes:
    """Returns the bytes of a store's files, read by another process (see `copies`)."""
    done = subprocess.run(
        ["cat", *sorted(map(str, path.parent.glob(f"{path.name}*")))],
        capture_output=True, check=True,
    )  # fmt: skip
    return done.stdout


def test_forget_leaves_no_claim_and_no_verdict_in_postgres(postgres_url: str) -> None:
    fill(postgres_url)
    with closing(opened(postgres_url)) as store:
        judging_of(store).run()
        store.delete([f"c{n}" for n in range(CHUNKS - 1)])
    with psycopg.connect(postgres_url) as connection:
        counts = [
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()
            for table in ("gcmem_chunks", "gcmem_claims", "gcmem_verdicts", "gcmem_pins")
        ]
    assert counts == [(1,), (1,), (0,), (0,)]


def test_who_judges_what_another_has_just_judged_adds_nothing(
    location: str, undisturbed: Counter[Any]
) -> None:
    class Overtaken(RuleJudge):
        """While it reads its first page, another process judges everything."""

        is_alone = True

        def rule(
            self, pairs: Sequence[tuple[Claim, Claim]], *, question: str = ""
        ) -> Sequence[Ruling]:
            if pairs and self.is_alone:
                self.is_alone = False
                with closing(opened(location)) as other:
                    assert judging_of(other).run().judged == CHUNKS
            return super().rule(pairs)

    with closing(opened(location)) as store:
        assert judging_of(store, Overtaken()).run().judged == 0
    with closing(opened(location)) as store:
        chunks = list(store.log.scan(EVERYTHING))
        assert judging_of(store).judge_now(chunks, budget_s=60) == []
    assert all_rows(location) == undisturbed


@pytest.mark.parametrize("seed", [1, 2])
def test_any_order_of_judging_gives_the_same_in_every_store(
    location: str, undisturbed: Counter[Any], seed: int
) -> None:
    rng = random.Random(seed)
    with closing(opened(location)) as store:
        chunks = list(store.log.scan(EVERYTHING))
        while judging_of(store).pending():
            judging_of(store).judge_now(rng.sample(chunks, 5), budget_s=60)
            judging_of(store).run(limit=rng.randint(0, 5))
    assert all_rows(location) == undisturbed
