"""What was spent on which data set: an optional SQLite file that refuses to pass a cap.

**Sequential composition, in plain words.** Whoever sees two releases of the same data sees both noises, and can average
them. The promises then add up: two releases at epsilon 1 protect as one at epsilon 2 would. Neither time nor deleting a
release gives epsilon back. So a steward sets a cap for each data set, and every release is booked here.

**One promise for each account.** Epsilons add only if they speak of the same thing. An account has one neighbouring
relation and one number of rows per person, fixed when it is opened. "replace" and "add-remove" are not mixed: replacing
a row is removing one and adding one, so an add-remove epsilon counts twice under "replace", and a replace promise says
nothing about tables of different lengths. An entry that promises for more rows per person than the account asks is
welcome; one for fewer is refused. Releases with a delta are refused too, unless the account was opened with one, which
caps their sum; what they cost together is then the least that the sum of epsilons and the sum of rho say.

**Reserve, then confirm.** A release is booked before the data are opened, with its id and with the synthesizer that
makes it: only that one knows whether noise was drawn, and an error frees the entry only if none was. Everything else
counts: a release that was left without an error, a run that was killed, an entry that was made for a bare promise.
`close` turns a pending entry into a spent one, given the file of its release; nothing frees one whose run is gone.

**What is in the file.** Names that the steward gives, epsilons as exact fractions, a digest of the public schema, ids
and digests of release files, notes, the user and the time; never a path or a hash of the data. It is a book, not a
lock: who can write the file can change it.

    records   accounts, entries, raises: what is in the book    names    which names mean the same data set
    file      the SQLite file, its format and its migration     merging  one book of two
    book      Ledger: what may be asked and booked              reservation  an entry until it is settled
"""

from privmeasure.ledger.book import Ledger
from privmeasure.ledger.merging import Merged
from privmeasure.ledger.records import Account, Contents, Entry, Raise, fraction_text, schema_digest
from privmeasure.ledger.reservation import Reservation

__all__ = [
    "Account",
    "Contents",
    "Entry",
    "Ledger",
    "Merged",
    "Raise",
    "Reservation",
    "fraction_text",
    "schema_digest",
]
