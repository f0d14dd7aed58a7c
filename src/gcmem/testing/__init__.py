"""Fakes and conformance suites, for gcmem's own tests and for third-party stores and oracles.

The suite is in `gcmem.testing.store_suite`, which needs pytest; the fakes need nothing.
"""

from gcmem.testing.fakes import HashEncoder, RuleOracle, ScriptedChat

__all__ = ["HashEncoder", "RuleOracle", "ScriptedChat"]
