"""Checks of results against numpy, within error bounds for floats."""
