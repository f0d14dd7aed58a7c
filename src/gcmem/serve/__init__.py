"""Serves a memory over the network."""
