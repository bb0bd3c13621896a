"""The programs, their versions, and those that a lab needs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from flexspot.capacity.catalog.data_files import DataFileError
from flexspot.lab.tools.build import all_families, families, family_named, read_families

if TYPE_CHECKING:
    from pathlib import Path


def test_families_on_request_are_listed_but_not_built_with_the_lab() -> None:
    on_request = [family.name for family in all_families() if family.on_request]

    assert {"actionlint", "prometheus", "pulumi-nodejs"} <= set(on_request)
    assert {family.name for family in families()}.isdisjoint(on_request)
    assert [family_named(name).name for name in on_request] == on_request


def test_a_misspelt_field_of_tools_yaml_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "tools.yaml"
    broken.write_text("families: [{name: x, module: m, binarys: {}}]\n")

    with pytest.raises(DataFileError, match=r"families\.0\.binarys: Extra inputs"):
        read_families(broken)


def test_every_shipped_family_is_pinned_to_a_version() -> None:
    assert [family.name for family in all_families() if not re.fullmatch(r"v\d+\.\d+\.\d+(-\S+)?", family.version)] == []
