"""The fields of kinds, collected from definitions and models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from flexspot.policies.inventory import field_schemas
from flexspot.policies.inventory.field_schemas import KINDS, TYPES, fields

if TYPE_CHECKING:
    from collections.abc import Iterator

ASSETS = Path(__file__).resolve().parents[3] / ".tools" / "assets"
FOLDERS = ("kueue", "karpenter", "karpenter-aws")


def names(tree: Any) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    for each in tree.values() if isinstance(tree, dict) else ():
        yield from names(each)


def test_every_named_type_exists() -> None:
    written = fields()

    assert {name for part in (KINDS, TYPES) for name in names(written[part])} <= written[TYPES].keys()


@pytest.mark.engine
def test_the_file_matches_the_pinned_definitions() -> None:
    """If this fails, run `python -m flexspot.policies.inventory.field_schemas` with these definitions and JobSet's."""
    found = field_schemas.collected([path for folder in FOLDERS for path in sorted((ASSETS / folder / "crds").glob("*.yaml"))])

    written = fields()
    assert {kind: written[KINDS].get(kind) for kind in found[KINDS]} == found[KINDS]
    assert written[TYPES] == found[TYPES]
