"""The recency buffer in Redis."""
