"""REST, MCP and Python call the same value by the same name."""

from __future__ import annotations

from dataclasses import fields
from inspect import getmembers, isclass

from pydantic import BaseModel

from gcmem.serve.http import reply_schemas as rest
from gcmem.serve.http import request_schemas
from gcmem.serve.mcp import schemas as mcp
from gcmem.types import (
    Answer,
    Candidate,
    Chunk,
    Claim,
    Doubt,
    Scope,
    SearchResult,
    Shadow,
    Skew,
    Verdict,
)

ONLY_REST = {"memory", "user_id", "agent_id", "run_id", "timings_ms", "omitted", "whole"}
ONLY_MCP = {"live", "shadow", "doubt", "complete", "note"}


def names(model: type[BaseModel]) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


def test_mcp_uses_the_names_of_rest() -> None:
    known = {
        name
        for module in (rest, request_schemas)
        for _, model in getmembers(module, isclass)
        if issubclass(model, BaseModel)
        for name in names(model)
    }
    for _, model in getmembers(mcp, isclass):
        if issubclass(model, BaseModel):
            assert names(model) <= known | ONLY_MCP, model


def test_rest_uses_the_names_of_python() -> None:
    pairs = (
        (rest.ChunkOut, Chunk),
        (rest.CandidateOut, Candidate),
        (rest.ConflictOut, Verdict),
        (rest.VerdictOut, Verdict),
        (rest.DoubtOut, Doubt),
        (rest.SkewOut, Skew),
        (rest.ShadowOut, Shadow),
        (rest.AnswerOut, Answer),
        (rest.SearchReply, SearchResult),
        (request_schemas.Scoped, Scope),
    )
    # Of an answer's resolution; of each conflict.
    in_parts = {"kept", "doubtful", "shadows", "unjudged", "oracle"}
    for reply, value in pairs:
        in_python = {field.name for field in fields(value)}
        assert names(reply) <= in_python | ONLY_REST | in_parts, value
    # A claim is its words, with what its chunk says of it.
    of_chunk = {field.name for field in fields(Chunk)}
    assert names(rest.ClaimOut) <= of_chunk | {field.name for field in fields(Claim)} | ONLY_REST
