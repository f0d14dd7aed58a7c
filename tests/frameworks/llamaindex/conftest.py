from __future__ import annotations

from importlib.util import find_spec

# The framework has an environment of its own; pytest fails there where nothing is collected.
collect_ignore_glob = [] if find_spec("llama_index") else ["test_*.py"]
