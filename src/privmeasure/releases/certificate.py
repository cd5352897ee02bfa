"""What a certificate says: of one tree, and of all columns at once. `certify` makes them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

CertificateMethod = Literal["exact", "tree", "exact above tree"]


@dataclass(frozen=True, slots=True)
class Certificate:
    """An upper bound of W1 between the data and the rows of a release that holds with probability 1 - beta.

    The chance is over the noise, the places of the rows in their cells and the simulated draws.
    value = noise + gap + cell + moved, at most the diameter; `moved` is how far order constraints move the rows from
    the released measure, 0 without them. `method` says how masses were compared: by exact transport, along
    the tree, or by exact transport at level `exact_level` and along the tree below it; `level` is the finest level that
    was used. The number of rows lies between `rows_low` and `rows_high`; the bound holds for all of these.
    """

    value: float
    beta: float
    method: CertificateMethod
    noise: float
    gap: float
    cell: float
    level: int
    exact_level: int
    rows_low: int
    rows_high: int
    draws: int
    diameter: float
    moved: float = 0.0

    @property
    def vacuous(self) -> bool:
        """Whether it says no more than that both measures live in the same space."""
        return self.value >= self.diameter

    def named(self, names: Sequence[str]) -> "Certificate":
        """Return itself: it is about all columns together."""
        return self

    def of_rows(self, distances: Sequence[float]) -> "Certificate":
        """Return the certificate of rows that are this far from the released measure: W1 obeys the triangle inequality.

        What was already at the diameter stays there.
        """
        (moved,) = distances
        return replace(self, value=min(self.value + moved, self.diameter), moved=moved)

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a JSON value."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __str__(self) -> str:
        """Say it in words."""
        how = {
            "exact": "exact transport",
            "tree": "along the tree of cells",
            "exact above tree": f"exact transport at level {self.exact_level}, along the tree below",
        }[self.method]
        lines = [
            f"certificate  W1 distance to the data at most {self.value:.4g} with probability {1 - self.beta:g}, "
            f"where the whole space has diameter {self.diameter:.4g}",
            f"made of      noise {self.noise:.4g} + released masses against noisy counts {self.gap:.4g} + cells "
            f"{self.cell:.4g}" + (f" + rows moved by constraints {self.moved:.4g}" if self.moved else ""),
            f"by           {how}; level {self.level}, {self.draws} simulated draws of the noise",
        ]
        if self.vacuous:
            lines.append("             it says nothing: it reaches the diameter. It takes more rows or more epsilon.")
        return "\n".join(lines)


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

    def named(self, names: Sequence[str]) -> "ColumnCertificates":
        """Return them by other names of the columns."""
        return replace(self, names=tuple(names))

    def of_rows(self, distances: Sequence[float]) -> "ColumnCertificates":
        """Return the certificates of rows that are this far from each released column."""
        pairs = zip(self.certificates, distances, strict=True)
        return replace(self, certificates=tuple(None if c is None else c.of_rows([far]) for c, far in pairs))

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
