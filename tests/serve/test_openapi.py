"""The contract: paths, statuses and shapes that clients rely on."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from gcmem import Memory

READ = "401 403 422 429 500 503 504"
BODY = "400 401 403 408 413 415 422 429 500 503 504"
ITEM = "401 403 404 422 429 500 503 504"
WORD = "400 401 403 404 408 413 415 422 429 500 503 504"
GOLDEN = {
    "POST /v1/memories": f"201 {BODY}",
    "GET /v1/memories": f"200 {READ}",
    "DELETE /v1/memories": f"200 202 {READ}",
    "GET /v1/memories/{memory_id}": f"200 {ITEM}",
    "DELETE /v1/memories/{memory_id}": f"202 204 {ITEM}",
    "POST /v1/memories/{memory_id}/pin": f"204 {WORD}",
    "DELETE /v1/memories/{memory_id}/pin": f"204 {WORD}",
    "POST /v1/verdicts": f"201 {WORD}",
    "GET /v1/current": f"200 {READ}",
    "GET /v1/history": f"200 {READ}",
    "POST /v1/search": f"200 {BODY}",
    "POST /v1/ask": f"200 {BODY}",
    "POST /v1/resolve": f"200 {BODY}",
    "GET /v1/qualify": "200 401 403 429 500 503",
    "GET /v1/whoami": "200 401 403 429 500 503",
    "GET /healthz": "200 500",
    "GET /readyz": "200 500 503",
    "GET /metrics": "200 401 403 429 500 503",
}


@pytest.fixture
def schema(client: TestClient) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/openapi.json").json()
    return found


def operations(schema: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        f"{method.upper()} {path}": operation
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    }


def test_paths_and_statuses_are_the_golden_ones(schema: dict[str, Any]) -> None:
    found = {
        name: " ".join(sorted(operation["responses"]))
        for name, operation in operations(schema).items()
    }
    assert found == GOLDEN


def test_every_error_is_a_problem_and_every_reply_has_an_id(schema: dict[str, Any]) -> None:
    for name, operation in operations(schema).items():
        assert operation["operationId"]
        assert operation["description"]
        for status, response in operation["responses"].items():
            assert "X-Request-Id" in response["headers"], name
            if status >= "400":
                (media_type,) = response["content"]
                assert media_type == "application/problem+json"
            if status == "429":
                assert "Retry-After" in response["headers"]


@pytest.mark.filterwarnings("ignore::gcmem.errors.UnqualifiedOracleWarning")
def test_every_body_has_an_example_that_works(
    schema: dict[str, Any], client: TestClient, memory: Memory
) -> None:
    older, newer = (chunk.id for chunk in memory.add(["city=Rome", "city=Oslo"], user_id="ana"))
    bodies = 0
    for name, operation in operations(schema).items():
        if "requestBody" not in operation:
            continue
        shape = operation["requestBody"]["content"]["application/json"]["schema"]
        reference = next(s["$ref"] for s in shape.get("anyOf", [shape]) if "$ref" in s)
        (example,) = schema["components"]["schemas"][reference.rpartition("/")[2]]["examples"]
        known = {"older": older, "newer": newer}  # the ids of an example are made up
        sent = {field: known.get(field, value) for field, value in example.items()}
        method, path = name.split()
        reply = client.request(method, path.format(memory_id=older), json=sent)
        assert reply.status_code in (200, 201, 204), (name, reply.text)
        bodies += 1
    assert bodies == 7


def test_keys_are_declared(schema: dict[str, Any]) -> None:
    assert schema["components"]["securitySchemes"]["ApiKey"]["scheme"] == "bearer"
    by_name = operations(schema)
    assert by_name["POST /v1/search"]["security"] == [{"ApiKey": []}, {}]
    assert "security" not in by_name["GET /healthz"]
