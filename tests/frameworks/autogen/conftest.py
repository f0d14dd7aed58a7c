from importlib.util import find_spec

# The framework has an environment of its own; `make test-integrations` runs these there.
collect_ignore_glob = [] if find_spec("autogen_core") else ["test_*.py"]
