"""Adapters to frameworks, one file each; import the one you use, with its extra installed."""
