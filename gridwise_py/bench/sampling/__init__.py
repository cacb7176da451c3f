"""Measuring one primitive or callable: warm-up, blocks of samples, the measurement."""
