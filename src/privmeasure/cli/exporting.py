"""A ledger as text: CSV with one line for each account, entry and raise of a cap, or JSON by account."""

import csv
import io
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from privmeasure.ledger import Account, Contents, Entry, Raise

EXPORTED = ["kind", "dataset", "id", "number", "time", "user", "epsilon", "state", "cap", "cap_before"]
EXPORTED += ["neighbours", "rows_per_person", "person", "schema", "release", "files", "note", "delta"]


def to_json(contents: "Contents") -> str:
    """Return accounts with what was spent, their entries and the raises of their caps."""
    accounts = [_account(*found) for found in contents.by_account()]
    return json.dumps({"accounts": accounts}, indent=2, ensure_ascii=False) + "\n"


def _account(account: "Account", entries: "list[Entry]", raises: "list[Raise]") -> dict[str, Any]:
    from privmeasure.ledger.records import total

    spent = total(entries, account.delta)
    value = account.to_json() | {"spent": str(spent), "remaining": str(account.cap - spent)}
    return value | {"entries": [e.to_json() for e in entries], "raises": [r.to_json() for r in raises]}


def to_csv(contents: "Contents") -> str:
    """Return one line for each account, each followed by its entries and raises; what a kind has not stays empty.

    A text that a spreadsheet would take for a formula has an apostrophe before it; JSON has it as it is.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, EXPORTED, restval="", lineterminator="\n")
    writer.writeheader()
    for account, entries, raises in contents.by_account():
        about = account.to_json()
        writer.writerow(_plain({"kind": "account", "time": about.pop("day")} | about))
        for entry in entries:
            writer.writerow(_plain(entry.to_json() | {"kind": "entry", "files": " ".join(entry.files)}))
        for raised in raises:
            value = raised.to_json()
            told = {"kind": "raise", "cap_before": value.pop("before"), "note": value.pop("reason")}
            writer.writerow(_plain(told | value))
    return text.getvalue()


def _plain(cells: dict[str, Any]) -> dict[str, Any]:
    """Return cells that a spreadsheet shows and does not run.

    Examples:
        >>> _plain({"note": "=1+1", "number": 3})
        {'note': "'=1+1", 'number': 3}
    """
    return {k: f"'{v}" if isinstance(v, str) and v.startswith(("=", "+", "-", "@")) else v for k, v in cells.items()}
