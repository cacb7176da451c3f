"""The version, for everything in the package; pyproject.toml has the same."""

__all__ = ["__version__"]

__version__ = "0.1.0"
