"""Results files: their data model, reader, checks and writer."""
