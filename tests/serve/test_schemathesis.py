"""Generated requests against the whole API: no 5xx, and nothing that is not declared."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
import uvicorn
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from gcmem import Memory
from gcmem.serve.http.limits import Limits
from gcmem.testing import HashEncoder, RuleOracle
from tests.conftest import day, same_slot
from tests.serve.conftest import app_over
from tests.serve.test_openapi import GOLDEN

EXAMPLES = 20
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
WITH_INPUT = {n.split()[1] for n in GOLDEN} - {
    "/v1/qualify", "/v1/whoami", "/healthz", "/readyz", "/metrics"
}  # fmt: skip

pytestmark = pytest.mark.filterwarnings("ignore::gcmem.errors.UnqualifiedOracleWarning")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server in a thread, over the tests' quick models."""
    path: Path = tmp_path_factory.mktemp("schemathesis") / "m.db"
    memory = Memory(
        path, encoder=HashEncoder(), oracle=RuleOracle(same_slot), require_qualified=False
    )
    memory.add(["city=Rome", "city=Oslo"], user_id="ana", at=day(1))
    app = app_over(memory, limits=Limits(rate_per_s=0))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, access_log=False))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not (server.started and app.state.service.is_ready):
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("operation", GOLDEN)
def test_generated_requests_get_declared_replies(
    url: str, operation: str, mode: GenerationMode
) -> None:
    method, path = operation.split()
    found = schemathesis.openapi.from_url(f"{url}/openapi.json")[path][method]
    if mode is GenerationMode.NEGATIVE and path not in WITH_INPUT:
        return  # nothing to get wrong
    statuses: set[int] = set()

    @settings(
        max_examples=EXAMPLES,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=found.as_strategy(generation_mode=mode))
    def ask(case: schemathesis.Case[Any]) -> None:
        statuses.add(case.call_and_validate(checks=CHECKS, session=session).status_code)

    with requests.Session() as session:
        ask()
    assert statuses.isdisjoint({401, 403, 429})  # else the rest would prove nothing
    if mode is GenerationMode.POSITIVE:
        assert statuses & {200, 201, 404}
