"""The forms that the providers ask of texts, by the names that the rule files give them."""

from __future__ import annotations

import ipaddress
import json
import re
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_MEMBER = (
    r"allUsers|allAuthenticatedUsers|(projectOwner|projectEditor|projectViewer):.+"
    r"|(deleted:)?(user|serviceAccount|group|domain|principal|principalSet):.+"
)


def has_format(name: str, text: str) -> bool:
    """Whether `text` has the form called `name`; of a form that nobody has written down here, every text has it."""
    check = _FORMATS.get(name)
    return check is None or check(text)


def known_formats() -> set[str]:
    """The names of the forms that are checked."""
    return set(_FORMATS)


def _matches(pattern: str) -> Callable[[str], bool]:
    return lambda text: re.fullmatch(pattern, text) is not None


def _parses(read: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            read(text)
        except ValueError:
            return False
        return True

    return check


def _object(text: str) -> object:
    if not text.lstrip().startswith("{"):
        raise ValueError(text)
    return json.loads(text)


def _cidr(text: str) -> object:
    if "/" not in text:
        raise ValueError(text)
    return ipaddress.ip_network(text, strict=False)


_FORMATS: dict[str, Callable[[str], bool]] = {
    "arn": _matches(r"|arn:[a-z-]+:[a-z0-9-]+:[a-z0-9-]*:(\d{12}|aws|aws-managed)?:.+"),
    "aws-account-id": _matches(r"|\d{12}"),
    "bool-string": _matches(r"|true|false"),
    "cidr": _parses(_cidr),
    "gcp-iam-member": _matches(_MEMBER),
    "go-duration": _matches(r"([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+"),
    "ipv4": _parses(ipaddress.IPv4Address),
    "ipv6": _parses(ipaddress.IPv6Address),
    "json": _parses(json.loads),
    "json-object": _parses(_object),
    "rfc3339": _parses(datetime.fromisoformat),
}
