"""The one-shot functions, one subject per file."""
