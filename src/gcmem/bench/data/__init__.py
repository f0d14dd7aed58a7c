"""Datasets: the format of instances, loaders and generators."""
