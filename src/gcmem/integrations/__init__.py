"""Adapters to frameworks, one module each. Import the one you use, with its extra installed."""
