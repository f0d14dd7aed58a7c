"""Qdrant as the index of a store whose log is in SQLite or PostgreSQL."""
