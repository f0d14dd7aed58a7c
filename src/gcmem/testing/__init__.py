"""Fakes and conformance suites, for gcmem's own tests and for third-party stores and oracles.

The suites are in `gcmem.testing.store_suite` and need pytest; the fakes need nothing.
"""

from gcmem.testing.fakes import HashEncoder, RuleOracle, ScriptedChat

__all__ = ["HashEncoder", "RuleOracle", "ScriptedChat"]
