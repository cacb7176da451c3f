"""Fleets: one suite on many devices, put together from their files and judged against each other."""
