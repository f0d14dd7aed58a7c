from importlib.util import find_spec

# CrewAI can't be installed beside the OpenAI Agents SDK, so it has an environment of its own.
collect_ignore_glob = [] if find_spec("crewai") else ["test_*.py"]
