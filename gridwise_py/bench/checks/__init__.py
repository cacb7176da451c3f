"""Whether results are right: against numpy, within the error that floats may have."""
