"""The laws that domains and columns of one's own must pass, and the hostile cells that they are tried with."""

from privmeasure.testing.columns import check_column
from privmeasure.testing.domains import check_domain

__all__ = ["check_column", "check_domain"]
