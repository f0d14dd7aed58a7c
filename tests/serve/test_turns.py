from __future__ import annotations

import threading
import time
from collections import Counter

from gcmem.serve.http.turns import Turns


def work(turns: Turns, caller: str, done: Counter[str], stop: threading.Event) -> None:
    while not stop.is_set():
        with turns.take(caller):
            time.sleep(0.002)
        done[caller] += 1


def test_two_callers_get_as_much_whatever_their_threads() -> None:
    turns = Turns(active=lambda: 2, cores=2)
    done: Counter[str] = Counter()
    stop = threading.Event()
    threads = [
        threading.Thread(target=work, args=(turns, caller, done, stop))
        for caller in ("greedy", "greedy", "greedy", "greedy", "greedy", "greedy", "b", "b")
    ]
    for thread in threads:
        thread.start()
    time.sleep(1)
    stop.set()
    for thread in threads:
        thread.join()
    assert done["b"] > 20
    assert 0.5 < done["greedy"] / done["b"] < 2


def test_one_caller_alone_gets_every_core() -> None:
    turns = Turns(active=lambda: 1, cores=3)
    together = threading.Barrier(3, timeout=10)

    def step() -> None:
        with turns.take("a"):
            together.wait()  # passes only when three are inside at once

    threads = [threading.Thread(target=step) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not together.broken


def test_no_more_than_one_step_runs_on_a_core() -> None:
    turns = Turns(active=lambda: 5, cores=2)
    lock, inside, most = threading.Lock(), 0, 0

    def step(caller: str) -> None:
        nonlocal inside, most
        for _ in range(20):
            with turns.take(caller):
                with lock:
                    inside += 1
                    most = max(most, inside)
                time.sleep(0.001)
                with lock:
                    inside -= 1

    threads = [threading.Thread(target=step, args=(name,)) for name in "abcde"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 2
