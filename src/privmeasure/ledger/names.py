"""Which names mean the same data set, and what a line of the book may be.

Two spellings of one name would be two accounts, each with a cap of its own: so names are compared without regard to
case, to spaces around and between words, to compatible forms of letters, dashes and apostrophes, and to characters
that cannot be seen. Letters
of two alphabets that look alike are different all the same: a book is no lock.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence

from privmeasure.errors import ArgumentError
from privmeasure.ledger.records import LONGEST_NAME, LONGEST_NOTE, Account

UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""What Unicode lets a display leave out (Default_Ignorable_Code_Point), and the blank of Braille."""
ALIKE = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-") | dict.fromkeys("\u2018\u2019\u02bc`", "'")
)
"""Dashes and apostrophes that programs put in the place of those on the keyboard."""


def fold(name: str) -> str:
    """Return what two names of one data set have in common.

    Examples:
        >>> fold(" Survey  2024 ") == fold("survey 2024") == fold("\uff33urvey\u200b 2024")
        True
        >>> fold("Bob\u2019s survey\u20132024")
        "bob's survey-2024"
    """
    text = UNSEEN.sub("", unicodedata.normalize("NFKC", name)).casefold().translate(ALIKE)
    return " ".join(unicodedata.normalize("NFKC", text).split())


def collisions(accounts: Iterable[Account]) -> list[list[str]]:
    """Return the names that mean the same data set and have accounts of their own: only older books have them."""
    groups: dict[str, list[str]] = {}
    for account in accounts:
        groups.setdefault(fold(account.dataset), []).append(account.dataset)
    return [names for names in groups.values() if len(names) > 1]


def find(accounts: Sequence[Account], dataset: str, where: str) -> Account:
    """Return the account of a name: the one that is spelled so, or the only one that means the same."""
    text = dataset if isinstance(dataset, str) else ""
    same = [account for account in accounts if account.dataset == text]
    same = same or [account for account in accounts if fold(account.dataset) == fold(text)]
    if not same:
        known = ", ".join(repr(account.dataset) for account in accounts) or "none yet"
        raise ArgumentError(
            f"{where} has no account for {dataset!r}; its accounts: {known}. Open one with `privmeasure ledger open`, "
            "with a cap that you would defend."
        )
    if len(same) > 1:
        names = ", ".join(repr(account.dataset) for account in same)
        raise ArgumentError(f"{dataset!r} may be any of {names} in {where}. Spell it as it is there.")
    return same[0]


def check_name(dataset: str) -> None:
    """Refuse a name that is a path, a hash of the data, or cannot be read as it is written."""
    check_text("dataset", dataset, LONGEST_NAME)
    plain = unicodedata.normalize("NFKC", dataset)
    if not fold(dataset) or re.search(r"[/\\]", plain) or re.fullmatch(r"[0-9a-fA-F]{32,}", plain.strip()):
        raise ArgumentError(
            f"dataset must be a name that you give to the data, like 'survey 2024', got {dataset!r}. A path or a hash "
            "of the data does not belong into a ledger that others may read."
        )
    if UNSEEN.search(dataset):
        raise ArgumentError(f"dataset must be a name without characters that cannot be seen, got {dataset!a}.")


def check_text(name: str, text: str, longest: int = LONGEST_NOTE) -> None:
    """Refuse what is not one short line."""
    if not isinstance(text, str) or len(text) > longest or not text.isprintable():
        raise ArgumentError(f"{name} must be one line of at most {longest} printable characters.")
