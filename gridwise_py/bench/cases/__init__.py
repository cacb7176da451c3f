"""Cases of a benchmark: primitive, size, data, mode and name."""
