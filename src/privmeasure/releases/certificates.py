"""Certificates of all columns at once."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from privmeasure.releases.certificate import Certificate


@dataclass(frozen=True, slots=True)
class ColumnCertificates:
    """For each column a bound of the W1 distance between its data and its release; all hold at once but for beta.

    Each is about the released measure of its column, at a chance beta / k for k columns that were measured. A column
    with a single value needs none: its certificate is None, its distance 0. Nothing is certified jointly.
    """

    beta: float
    names: tuple[str, ...]
    certificates: tuple[Certificate | None, ...]

    def __getitem__(self, name: str) -> Certificate | None:
        """Return the certificate of a column."""
        return dict(zip(self.names, self.certificates, strict=True))[name]

    def __iter__(self) -> Iterator[Certificate | None]:
        """Go through the certificates in the order of the columns."""
        return iter(self.certificates)

    @property
    def vacuous(self) -> bool:
        """Whether none of them says more than that both measures live in the same space."""
        return all(certificate is None or certificate.vacuous for certificate in self.certificates)

    def to_json(self) -> dict[str, Any]:
        """Return the certificates by column as a JSON value."""
        pairs = zip(self.names, self.certificates, strict=True)
        return {"beta": self.beta, "columns": {name: None if c is None else c.to_json() for name, c in pairs}}

    def __str__(self) -> str:
        """Say it in words."""
        lines = [
            f"certificate  W1 distance of each column to its data, all at once with probability {1 - self.beta:g}; "
            "nothing is certified jointly"
        ]
        wide = max(map(len, self.names), default=0)
        for name, certificate in zip(self.names, self.certificates, strict=True):
            if certificate is not None:
                said = (
                    "nothing: it reaches the diameter"
                    if certificate.vacuous
                    else f"at most {certificate.value / certificate.diameter:.4g} of its diameter"
                )
                lines.append(f"  {name:<{wide}}  {said}")
        return "\n".join(lines)
