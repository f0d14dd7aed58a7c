"""Serving a memory to others."""
