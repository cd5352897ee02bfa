"""The laws that domains, columns and sources of one's own must pass, and the hostile cells that they are tried with."""

from privmeasure.testing.columns import check_column
from privmeasure.testing.domains import check_domain
from privmeasure.testing.sources import check_source

__all__ = ["check_column", "check_domain", "check_source"]
