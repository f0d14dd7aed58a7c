"""Fakes and conformance suites, for gcmem's own tests and for third-party stores and oracles."""

from gcmem.testing.fakes import HashEncoder, RuleOracle, ScriptedChat
from gcmem.testing.store_suite import StoreSuite

__all__ = ["HashEncoder", "RuleOracle", "ScriptedChat", "StoreSuite"]
