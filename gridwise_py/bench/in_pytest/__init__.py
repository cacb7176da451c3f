"""Benchmarks in pytest; the package ``gridwise_pytest`` beside this one is the plug-in that pytest loads."""
