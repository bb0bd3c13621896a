"""Checks a cost and usage dataset against the requirements of FOCUS 1.2 (focus-1.2.yaml)."""

from __future__ import annotations

import json
import re
from decimal import Decimal, localcontext
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Row = dict[str, str]
"""Values by column. An empty text is no value, as in a CSV file."""

_FORMATS = {
    # NumericFormat: a decimal point, a sign only for negative values, no commas.
    "decimal": re.compile(r"-?\d+(\.\d+)?"),
    "price": re.compile(r"\d+(\.\d+)?"),
    # DateTimeFormat-A-003 to 006.
    "datetime": re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z"),
    # CurrencyFormat-A-001 and BillingCurrency-C-006: a national currency.
    "currency": re.compile("USD"),
    # StringHandling-A-007.
    "string": re.compile(r"(?s).*\S.*"),
}
_DETAILS = {"CoreCount", "GpuCount", "InstanceType"}
"""Properties that FOCUS defines. Others begin with x_ (SkuPriceDetails-C-017)."""


@cache
def requirements() -> dict[str, Any]:
    """Return the requirements in the file."""
    return yaml.safe_load((Path(__file__).parent / "focus-1.2.yaml").read_text(encoding="utf-8"))


def broken(columns: Sequence[str], rows: Sequence[Row]) -> list[str]:
    """Return the rules that the dataset breaks, by id, with the row's number if the rule is about one."""
    found = list(_of_columns(columns))
    for number, row in enumerate(rows):
        found += [f"{rule} (row {number})" for rule in (*_of_values(row), *_of_rules(row), *_of_products(row))]
    for rule, (one, other) in requirements()["one_each"].items():
        others: dict[str, set[str]] = {}
        for row in rows:
            others.setdefault(row[one], set()).add(row[other])
        found += [f"{rule} ({value})" for value, each in others.items() if value and len(each) > 1]
    return found


def _of_columns(columns: Sequence[str]) -> Iterator[str]:
    known = requirements()["columns"]
    yield from (f"{name}: missing" for name in known if name not in columns)
    own = [name for name in columns if name not in known]
    yield from (f"ColumnHandling-A-010-M: {name}" for name in own if not re.fullmatch(r"x_([A-Z][a-z0-9]+)+", name))
    if list(columns[len(columns) - len(own) :]) != own:
        yield "ColumnHandling-A-013-O"
    if len(set(columns)) != len(columns):
        yield "a column stands twice"


def _of_values(row: Row) -> Iterator[str]:
    for name, each in requirements()["columns"].items():
        value = row.get(name, "")
        null = each.get("null", "")
        if (null == "never" and not value) or (null == "always" and value):
            yield f"{name}: {'not null' if value else 'null'}"
        if value:
            yield from (f"{name}: {problem}" for problem in _of_value(value, each))
    if row["ServiceSubcategory"] not in requirements()["subcategories"].get(row["ServiceCategory"], ()):
        yield "ServiceSubcategory-C-004-M"
    if not row["ChargePeriodStart"] < row["ChargePeriodEnd"]:
        yield "ChargePeriodEnd-C-004-M"


def _of_value(value: str, column: dict[str, Any]) -> Iterator[str]:
    kind = column["type"]
    if kind in _FORMATS:
        if not _FORMATS[kind].fullmatch(value):
            yield f"not of type {kind}"
    elif problem := _pairs_problem(value, details=kind == "details"):
        yield problem
    if "values" in column and value not in column["values"]:
        yield "not an allowed value"


def _pairs_problem(value: str, *, details: bool) -> str | None:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) != len(pairs):
            raise ValueError("KeyValueFormat-A-002-M")
        return dict(pairs)

    try:
        found = json.loads(value, object_pairs_hook=unique)
    except ValueError as error:
        return str(error) if "KeyValueFormat" in str(error) else "KeyValueFormat-A-001-M"
    if not value.startswith("{"):
        return "KeyValueFormat-A-001-M"
    if any(json.dumps(each).startswith(("{", "[")) for each in found.values()):
        return "KeyValueFormat-A-004-M"
    if details and any(not key.startswith("x_") and key not in _DETAILS for key in found):
        return "SkuPriceDetails-C-017-C"
    return None


def _holds(value: str, allowed: Sequence[str]) -> bool:
    if allowed in (["null"], ["*"]):
        return (value == "") is (allowed == ["null"])
    refused = {each.removeprefix("NOT ") for each in allowed if each.startswith("NOT ")}
    return value not in refused if refused else value in allowed


def _of_rules(row: Row) -> Iterator[str]:
    for rule in requirements()["rules"]:
        if "where_differ" in rule:
            one, other = rule["where_differ"]
            applies = row[one] != row[other]
        else:
            applies = all(_holds(row[name], allowed) for name, allowed in rule["where"].items())
        if applies and not _is(row[rule["column"]], rule["must"]):
            yield rule["id"]


def _is(value: str, must: str | dict[str, Any]) -> bool:
    if isinstance(must, str):
        return (value == "") is (must == "null")
    if "text" in must:
        return value == must["text"]
    return Decimal(value) == must["is"] if "is" in must else value != must["is_not"]


def _of_products(row: Row) -> Iterator[str]:
    with localcontext(prec=60):
        for rule, names in requirements()["products"].items():
            values = [row[name] for name in names]
            if all(values) and row["ChargeClass"] != "Correction" and Decimal(values[0]) * Decimal(values[1]) != Decimal(values[2]):
                yield rule
