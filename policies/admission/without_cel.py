"""Why the API server is not given some rules: the data file without_cel.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE = Path(__file__).with_suffix(".yaml")


def reasons() -> Mapping[str, str]:
    """The reason by rule name. Raises ValueError for a rule that is listed twice."""
    found: dict[str, str] = {}
    for entry in yaml.load(FILE.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader):
        for rule in entry["rules"]:
            if rule in found:
                raise ValueError(f"{FILE.name} lists {rule} twice: once is enough")
            found[rule] = entry["reason"]
    return found
