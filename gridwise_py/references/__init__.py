"""Right results of primitives by numpy, and how much a result of floats may differ."""
