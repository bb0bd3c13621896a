"""The providers' own validation rules of each resource type. The JSON files in this folder describe how they were read."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

FILES = tuple(Path(__file__).with_name(f"{name}.json") for name in ("google", "aws", "aws_efs", "aws_fsx"))


@dataclass(frozen=True)
class Attribute:
    """An argument or output of a resource type."""

    path: str
    """Terraform's path, as in the files."""

    facts: dict[str, Any]
    """The file's entry."""

    @property
    def is_block(self) -> bool:
        """True if it contains arguments."""
        return str(self.facts["type"]).endswith("(block)")

    @property
    def is_one(self) -> bool:
        """True if Pulumi has it as a plain value: no list, or a list that may contain one item only."""
        return not str(self.facts["type"]).startswith(("list", "set")) or self.facts.get("max_items") == 1

    @property
    def element_type(self) -> str:
        """Type of a value, or of each element."""
        return str(self.facts["type"]).partition("(")[2].rstrip(")") or str(self.facts["type"])

    @property
    def may_be_given(self) -> bool:
        """True if a program may set it at all."""
        return bool(self.facts.get("required") or self.facts.get("optional"))

    @property
    def pulumi_name(self) -> str:
        """The property's name in Pulumi."""
        return self.facts.get("pulumi") or camel_case(self.path.rpartition(".")[2])


@dataclass(frozen=True)
class ResourceRules:
    """Rules of one resource type."""

    token: str
    """Pulumi's type token."""

    facts: dict[str, Any]
    """The file's entry of the type as a whole."""

    attributes: dict[str, Attribute]
    source: str = ""
    """The provider that it was read from."""

    def inside(self, block: str) -> dict[str, Attribute]:
        """Return the arguments of a block ("" for the resource's own), by their names in Pulumi."""
        return self._by_block.get(block, {})

    def attribute_at(self, path: Iterable[str | int]) -> Attribute | None:
        """Return the attribute of a path in a resource's Pulumi inputs, or None if unknown. A key of a map belongs to the map."""
        found: Attribute | None = None
        for key in path:
            if isinstance(key, int):
                continue
            if found is not None and not found.is_block:
                return found
            found = self.inside("" if found is None else found.path).get(key)
            if found is None:
                return None
        return found

    def place_of(self, path: str) -> str:
        """Return a path of the rule files in Pulumi's names, without the indices of lists."""
        parts = path.split(".")
        known = (self.attributes.get(".".join(parts[: number + 1])) for number in range(len(parts)))
        return ".".join(each.pulumi_name if each else part for part, each in zip(parts, known, strict=True))

    @cached_property
    def _by_block(self) -> dict[str, dict[str, Attribute]]:
        found: dict[str, dict[str, Attribute]] = {}
        for path, attribute in self.attributes.items():
            found.setdefault(path.rpartition(".")[0], {})[attribute.pulumi_name] = attribute
        return found


def camel_case(name: str) -> str:
    """Return a Terraform name in Pulumi's spelling: `ip_cidr_range` is `ipCidrRange`."""
    return re.sub(r"_(\w)", lambda match: match[1].upper(), name)


@cache
def rules_by_type() -> dict[str, ResourceRules]:
    """Return the rules of every type in the files, by Pulumi's type token."""
    found: dict[str, ResourceRules] = {}
    for file in FILES:
        content = json.loads(file.read_text(encoding="utf-8"))
        source = f"{content['provider']} {re.split('[ ,]', content['version'])[0]}, read {content['date']}"
        for facts in content["resources"].values():
            found[facts["pulumi"]] = rules_of(facts["pulumi"], facts, source)
    return found


def rules_of(token: str, facts: dict[str, Any], source: str = "") -> ResourceRules:
    """Return the rules of one type, from its entry in a file."""
    attributes = {path: Attribute(path, each) for path, each in facts["attributes"].items()}
    return ResourceRules(token, {key: value for key, value in facts.items() if key != "attributes"}, attributes, source)
