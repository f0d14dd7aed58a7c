"""The benchmark: data, grid, metrics, statistics, tables and figures of "The Immutable Past"."""
