"""Which programs there are, of which versions, and which of them a lab needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from capacity.catalog.data_files import DataFileError
from lab.tools.build import all_families, families, family_named, read_families

if TYPE_CHECKING:
    from pathlib import Path


def test_what_no_lab_needs_is_named_but_not_built_with_the_lab() -> None:
    on_request = [family.name for family in all_families() if family.on_request]

    assert on_request == ["jobset", "kube-state-metrics", "prometheus", "pulumi-yaml", "pulumi-nodejs", "pulumi-nodejs-sdk"]
    assert {family.name for family in families()}.isdisjoint(on_request)
    assert [family_named(name).name for name in on_request] == on_request


def test_a_misspelt_field_of_tools_yaml_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "tools.yaml"
    broken.write_text("families: [{name: x, module: m, binarys: {}}]\n")

    with pytest.raises(DataFileError, match=r"families\.0\.binarys: Extra inputs"):
        read_families(broken)


def test_every_shipped_family_is_pinned_to_a_version() -> None:
    assert {family.name: family.version for family in all_families()} == {
        "etcd": "v3.6.10",
        "kwok": "v0.8.0",
        "karpenter": "v1.14.1",
        "karpenter-aws": "v1.14.1",
        "kueue": "v0.19.0",
        "autoscaler-apis": "v0.0.0-20240830133931-adfbe7e45277",
        "kubernetes": "v1.36.1",
        "pulumi": "v3.259.0",
        "pulumi-python": "v3.79.0",
        "actionlint": "v1.7.12",
        "jobset": "v0.12.0",
        "kube-state-metrics": "v2.20.0",
        "prometheus": "v0.315.0",
        "pulumi-yaml": "v1.25.0",
        "pulumi-nodejs": "v3.68.0",
        "pulumi-nodejs-sdk": "v3.259.0",
    }
