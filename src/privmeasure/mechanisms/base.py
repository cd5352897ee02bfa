"""What a mechanism is: the only door from private counts to public measures."""

from typing import Protocol

from privmeasure.counts import Progress, Source
from privmeasure.noise.entropy import Key
from privmeasure.plan import Plan
from privmeasure.release import Release


class Mechanism(Protocol):
    """Turns counts into a release. What it asks of the data, and what it spends, is in its plan."""

    def plan(self, rows: int | None = None) -> Plan:
        """Say what would be done and guaranteed, from public values alone; changes nothing."""
        ...

    def release(self, source: Source, key: Key, progress: Progress | None = None) -> Release:
        """Spend the budget: count, add noise from the key, destroy the key, return what anyone may see."""
        ...
