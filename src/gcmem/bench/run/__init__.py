"""Runs a grid of conditions over datasets."""
