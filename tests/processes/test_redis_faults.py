"""Redis is killed, emptied, stalled, full, locked or never there: answers stay the log's."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
import trustme

from gcmem import Memory, Settings
from gcmem.errors import StoreDegradedWarning
from gcmem.testing import HashEncoder, RuleOracle
from gcmem.types import Chunk, ChunkFilter, Scope
from tests.conftest import NOW, day, same_slot
from tests.redis_server import RedisServer

ANA = ChunkFilter(scope=Scope(user_id="ana"))
OPTIONS = "trust_s=3600&timeout_s=0.2&retry_after_s=0.3"
"""A trust that outlasts the test: no answer may be right only because it ran out."""
SLACK_S = 1.0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with RedisServer(tmp_path / "redis") as server:
        yield server


def open_memory(tmp_path: Path, stm: str | None) -> Memory:
    return Memory.from_url(
        f"sqlite:///{tmp_path / 'm.db'}",
        stm=stm,
        encoder=HashEncoder(),
        oracle=RuleOracle(same_slot),
        settings=Settings(strategy="paper", stm_size=5),
        require_qualified=False,
        clock=lambda: NOW,
    )


@pytest.fixture
def memory(tmp_path: Path, server: RedisServer) -> Iterator[Memory]:
    with open_memory(tmp_path, f"{server.url}?{OPTIONS}") as memory:
        yield memory


@contextlib.contextmanager
def warned(*, times: int) -> Iterator[None]:
    """The block says so many times that the store is degraded, and nothing else."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    kinds = [warning.category for warning in caught]
    assert kinds == [StoreDegradedWarning] * times, [str(w.message) for w in caught]


def truth(memory: Memory) -> tuple[Chunk, ...]:
    return memory.history(user_id="ana", newest_first=True, limit=5)


def served_by_redis(memory: Memory, tmp_path: Path) -> bool:
    """Tells who answers: only the log knows of a chunk that another process did not tell of."""
    memory.store.buffer.recent(ANA)
    with open_memory(tmp_path, None) as untold:
        (chunk,) = untold.add("untold", user_id="ana", at=day(100))
        unseen = chunk not in memory.store.buffer.recent(ANA)
        untold.delete(chunk.id)
    return unseen


def until(holds: Callable[[], bool], *, within_s: float = 10.0) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_killed_in_the_middle_of_writes_and_back_with_old_data(
    memory: Memory, server: RedisServer, tmp_path: Path
) -> None:
    def write_and_read(numbers: range) -> None:
        for n in numbers:
            memory.add(f"n={n}", user_id="ana", at=day(n))
            assert memory.store.buffer.recent(ANA) == truth(memory)
            assert memory.search("n", user_id="ana").kept[0].chunk.text == f"n={n}"

    write_and_read(range(5))
    assert served_by_redis(memory, tmp_path)
    with warned(times=1):
        killer = threading.Timer(0.02, server.kill)
        killer.start()
        write_and_read(range(5, 15))
        killer.join()
        write_and_read(range(15, 20))
    server.start()  # from its append-only file, which lacks what came since
    with open_memory(tmp_path, f"{server.url}?{OPTIONS}") as other:
        assert other.store.buffer.recent(ANA) == truth(memory)
    write_and_read(range(20, 25))
    until(lambda: served_by_redis(memory, tmp_path))
    write_and_read(range(25, 30))


def test_a_restart_voids_what_was_written_by_others_meanwhile(
    memory: Memory, server: RedisServer, tmp_path: Path
) -> None:
    memory.add("old", user_id="ana", at=day(1))
    assert served_by_redis(memory, tmp_path)
    server.kill()
    with open_memory(tmp_path, f"{server.url}?{OPTIONS}") as other, warned(times=1):
        other.add("new", user_id="ana", at=day(2))
    server.start()
    assert [chunk.text for chunk in memory.store.buffer.recent(ANA)] == ["new", "old"]
    assert served_by_redis(memory, tmp_path)


def test_emptied_and_evicted_lists_are_rebuilt(
    memory: Memory, server: RedisServer, tmp_path: Path
) -> None:
    memory.add([f"n={n}" for n in range(9)], user_id="ana", at=day(1))
    assert served_by_redis(memory, tmp_path)
    with server.client() as client:
        client.flushall()
        memory.add("n=9", user_id="ana", at=day(2))  # makes a set that has this chunk alone
        assert memory.store.buffer.recent(ANA) == truth(memory)
        assert served_by_redis(memory, tmp_path)
        client.delete(*client.keys("*"))
        assert memory.store.buffer.recent(ANA) == truth(memory)
        assert served_by_redis(memory, tmp_path)


def test_a_warning_that_is_made_an_error_does_not_hide_what_was_missed(
    memory: Memory, server: RedisServer, tmp_path: Path
) -> None:
    memory.add("n=0", user_id="ana", at=day(0))
    assert served_by_redis(memory, tmp_path)
    server.stall()
    with pytest.raises(StoreDegradedWarning):  # the suite makes errors of warnings
        memory.add("n=1", user_id="ana", at=day(1))
    server.resume()
    until(lambda: served_by_redis(memory, tmp_path))
    assert memory.store.buffer.recent(ANA) == truth(memory)


def test_a_full_redis_that_evicts_nothing_costs_a_warning_only(
    memory: Memory, server: RedisServer, tmp_path: Path
) -> None:
    memory.add("n=0", user_id="ana", at=day(0))
    assert served_by_redis(memory, tmp_path)
    with server.client() as client:
        client.config_set("maxmemory", "1")
        with warned(times=1):
            memory.add("n=1", user_id="ana", at=day(1))
            assert memory.store.buffer.recent(ANA) == truth(memory)
        client.config_set("maxmemory", "0")
    until(lambda: served_by_redis(memory, tmp_path))
    assert memory.store.buffer.recent(ANA) == truth(memory)


def test_a_stalled_server_costs_its_timeout_once_and_nothing_is_missed_after(
    memory: Memory, server: RedisServer, tmp_path: Path
) -> None:
    memory.add("n=0", user_id="ana", at=day(0))
    assert served_by_redis(memory, tmp_path)
    server.stall()
    with warned(times=1):
        started = time.monotonic()
        memory.add("n=1", user_id="ana", at=day(1))
        assert memory.store.buffer.recent(ANA) == truth(memory)
        assert time.monotonic() - started < 2 * 0.2 + SLACK_S
        time.sleep(0.4)  # long enough for the circuit to try again, and find it stalled still
        memory.add("n=2", user_id="ana", at=day(2))
        assert memory.store.buffer.recent(ANA) == truth(memory)
    server.resume()
    until(lambda: served_by_redis(memory, tmp_path))
    assert memory.store.buffer.recent(ANA) == truth(memory)


def test_the_password_comes_from_the_url_and_is_never_shown(tmp_path: Path) -> None:
    with RedisServer(tmp_path / "redis", "--requirepass", "s3cret") as server:
        right, wrong = (
            f"redis://:{password}@127.0.0.1:{server.port}/0?{OPTIONS}"
            for password in ("s3cret", "wr0ng")
        )
        with open_memory(tmp_path, right) as memory:
            memory.add("n=0", user_id="ana", at=day(0))
            assert served_by_redis(memory, tmp_path)
        with open_memory(tmp_path, wrong) as memory:
            with pytest.warns(StoreDegradedWarning, match=r"redis://:\*\*\*@") as caught:
                assert memory.store.buffer.recent(ANA) == truth(memory)
            assert "wr0ng" not in str(caught[0].message)


@pytest.mark.parametrize(
    "url",
    ["redis://127.0.0.1:1", "rediss://127.0.0.1:1", "unix:///no/such/socket",
     "redis+cluster://127.0.0.1:1,127.0.0.1:2", "redis+sentinel://127.0.0.1:1/stm",
     "redis://no-such-host.invalid"],
)  # fmt: skip
def test_a_redis_that_was_never_there_is_one_warning(tmp_path: Path, url: str) -> None:
    started = time.monotonic()
    with open_memory(tmp_path, f"{url}?timeout_s=0.2") as memory, warned(times=1):
        memory.add("n=0", user_id="ana", at=day(0))
        assert memory.store.buffer.recent(ANA) == truth(memory)
        memory.store.buffer.rebuild()
    assert time.monotonic() - started < 5


def test_after_a_failover_the_promoted_replica_is_not_taken_at_its_word(tmp_path: Path) -> None:
    with (
        RedisServer(tmp_path / "master") as master,
        RedisServer(tmp_path / "replica", "--replicaof", "127.0.0.1", str(master.port)) as replica,
    ):
        (tmp_path / "sentinel").mkdir()
        (tmp_path / "sentinel" / "sentinel.conf").write_text(
            f"sentinel monitor stm 127.0.0.1 {master.port} 1\n"
            "sentinel down-after-milliseconds stm 300\nsentinel failover-timeout stm 2000\n"
        )
        with replica.client() as client:
            until(lambda: client.info("replication")["master_link_status"] == "up")
        with RedisServer(tmp_path / "sentinel", mode="sentinel") as sentinel:
            url = f"redis+sentinel://127.0.0.1:{sentinel.port}/stm?{OPTIONS}"
            with sentinel.client() as client, open_memory(tmp_path, url) as memory:
                until(lambda: client.sentinel_master("stm")["num-slaves"] == 1, within_s=20)
                memory.add("n=0", user_id="ana", at=day(0))
                assert served_by_redis(memory, tmp_path)
                master.kill()
                with open_memory(tmp_path, url) as other, warned(times=1):
                    other.add("n=1", user_id="ana", at=day(1))  # the replica never hears of it
                until(lambda: promoted(replica), within_s=20)
                with warnings.catch_warnings():
                    # The old connection may fail once before Sentinel names the new master.
                    warnings.simplefilter("ignore", StoreDegradedWarning)
                    assert memory.store.buffer.recent(ANA) == truth(memory)
                    until(lambda: served_by_redis(memory, tmp_path), within_s=30)
                assert memory.store.buffer.recent(ANA) == truth(memory)


def promoted(replica: RedisServer) -> bool:
    with replica.client() as client, contextlib.suppress(redis.ConnectionError):
        return str(client.info("replication")["role"]) == "master"
    return False  # a server that is being promoted hangs up on its clients


def test_tls_is_spoken_and_the_certificate_is_checked(tmp_path: Path, server: RedisServer) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    with tls_in_front_of(server.port, context) as port:
        url = f"rediss://localhost:{port}?{OPTIONS}"
        with open_memory(tmp_path, f"{url}&ssl_ca_certs={tmp_path / 'ca.pem'}") as memory:
            memory.add("n=0", user_id="ana", at=day(0))
            assert served_by_redis(memory, tmp_path)
        with open_memory(tmp_path, url) as memory, warned(times=1):
            assert memory.store.buffer.recent(ANA) == truth(memory)


@contextlib.contextmanager
def tls_in_front_of(port: int, context: ssl.SSLContext) -> Iterator[int]:
    """Ends TLS and passes the bytes on: the wheel's server has no TLS of its own."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                plain, _ = listener.accept()
            except OSError:
                return
            with contextlib.suppress(OSError):
                secure = context.wrap_socket(plain, server_side=True)
                behind = socket.create_connection(("127.0.0.1", port))
                for source, sink in ((secure, behind), (behind, secure)):
                    threading.Thread(target=forward, args=(source, sink), daemon=True).start()

    def forward(source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        source.close()
        sink.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(5)
