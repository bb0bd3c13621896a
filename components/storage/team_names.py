"""Names of teams and environments, and those that Kubernetes gives to what is theirs."""

from __future__ import annotations

import re

from capacity.values.names import NAME

_NAME = re.compile(NAME)
_DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def check_setting_names(owner: str, names: dict[str, str]) -> None:
    """Raises ValueError for a name, by its argument, that the settings would refuse; it is then safe in a path and in a pattern."""
    for argument, value in names.items():
        if not _NAME.fullmatch(value):
            raise ValueError(f"{owner}: {argument} is {value!r}; a name has 1 to 40 of a-z, 0-9 and inner -, from a letter on: respell it")


def check_dns_labels(owner: str, names: dict[str, str]) -> None:
    """Raises ValueError for a name, by its argument, that Kubernetes refuses for a namespace, a service account or a claim."""
    for argument, value in names.items():
        if not _DNS_LABEL.fullmatch(value):
            raise ValueError(f"{owner}: {argument} is {value!r}; a name has 1 to 63 of a-z, 0-9 and inner -: respell it")
