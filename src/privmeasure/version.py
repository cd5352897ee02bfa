"""The version of the software, in one place: packaging, `--version` and every release read it here."""

__version__ = "0.1.0"
