"""The kinds of bills that are read, and which of them a file with these columns is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from flexspot.capacity.chargeback.bills import aws, focus, gcp
from flexspot.capacity.chargeback.bills.entries import BillError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from flexspot.capacity.chargeback.bills.entries import Entry


MAX_COLUMNS = 2000
"""Legacy reports have some hundreds, by tags."""


MAX_EXPANSION = 200
"""How many times its size a compressed bill may unpack to, from 64 MiB on. Real ones are 10 to 40 times; deflate can do 1,000."""


_ALWAYS_ALLOWED = 64 * 2**20


@dataclass(frozen=True)
class BillForm:
    """A kind of bill: by which columns it is known, which others are read where they are there, and what a row of it says."""

    name: str
    needed: tuple[str, ...]
    also: tuple[str, ...]
    column: Callable[[str], str]
    entries: Callable[[Mapping[str, str]], Iterator[Entry]]


AWS = BillForm("AWS Cost and Usage Report", aws.NEEDED, aws.ALSO, aws.column, aws.entries)


FOCUS = BillForm("FOCUS export", focus.NEEDED, focus.ALSO, focus.column, focus.entries)


GOOGLE = BillForm("Google Cloud billing export", gcp.NEEDED, gcp.ALSO, gcp.column, gcp.entries)


FORMS = (AWS, FOCUS, GOOGLE)


def most_unpacked(size: int) -> int:
    """How many bytes a compressed bill of `size` bytes may unpack to."""
    return max(_ALWAYS_ALLOWED, size * MAX_EXPANSION)


def form_of(header: Sequence[str]) -> BillForm:
    """What a file with these columns is. Raises BillError, with what is missing for what it is most like."""
    if len(header) > MAX_COLUMNS:
        raise BillError(f"it has {len(header)} columns, as no bill has")
    best, missing = FORMS[0], list(FORMS[0].needed)
    for form in FORMS:
        names = [form.column(each) for each in header]
        lacking = [each for each in form.needed if each not in names]
        if not lacking:
            if repeated := sorted({each for each in form.needed if names.count(each) > 1}):
                raise BillError(f"its column {repeated[0]} is there more than once")
            if form is GOOGLE and "credits_amount" in names:
                raise BillError("its credits are unnested, which repeats a row's cost for each of them; export credits as one JSON column")
            return form
        if len(lacking) / len(form.needed) < len(missing) / len(best.needed):
            best, missing = form, lacking
    if len(missing) == len(best.needed):
        names = ", ".join(form.name for form in FORMS)
        raise BillError(
            f"its columns are not those of any bill that can be read ({names}); the first line of a table must name the columns"
        )
    raise BillError(f"it looks like a {best.name}, and these columns are missing: {', '.join(missing)}")
