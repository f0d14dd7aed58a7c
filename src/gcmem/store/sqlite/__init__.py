"""The embedded store: log, index and verdicts of one SQLite file."""
