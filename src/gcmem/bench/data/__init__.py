"""Datasets: how instances look, where they come from, how they are drawn."""
