"""The version. This file is the only place that has it: the build reads it from here."""

__version__ = "0.2.0"
