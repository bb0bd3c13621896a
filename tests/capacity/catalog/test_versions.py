"""The table of versions: each row has a source, unverified rows pin nothing, and upstream's tables agree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flexspot.capacity.catalog.data_files import DataFileError, read_records
from flexspot.capacity.catalog.versions import Addon, Chart, VersionTable, shipped_versions, version_order
from flexspot.lab.tools.build import family_named

ROOT = Path(__file__).parents[3]
SHIPPED = ROOT / "capacity" / "flexspot" / "capacity" / "catalog" / "versions.yaml"
COMPATIBILITY = ROOT / ".tools" / "assets" / "karpenter-aws" / "compatibility" / "compatibility.yaml"


@pytest.mark.parametrize("kubernetes", shipped_versions().kubernetes)
def test_essential_components_are_pinned_for_each_version(kubernetes: str) -> None:
    assert set(shipped_versions().pinned(kubernetes)) == {Addon.KUBE_PROXY, Addon.COREDNS, Addon.VPC_CNI}


def test_unverified_versions_pin_nothing() -> None:
    table = shipped_versions()
    unverified = {name for name, source in table.sources.items() if not source.verified}
    rows = [
        (kubernetes, name) for kubernetes, addons in table.kubernetes.items() for name, row in addons.items() if row.source in unverified
    ]

    assert rows
    assert [name for kubernetes, name in rows if name in table.pinned(kubernetes)] == []


def test_karpenters_ranges_are_those_of_its_own_table() -> None:
    if not COMPATIBILITY.is_file():
        pytest.skip(f"there is no {COMPATIBILITY}: `make tools` brings it")
    assert family_named("karpenter-aws").version.removeprefix("v") == shipped_versions().chart(Chart.KARPENTER).version
    # By hand: to YAML 1.30 is the number 1.3.
    rows = re.findall(r"appVersion: (\S+?)(?:\.x)?\s+minK8sVersion: (\S+)\s+maxK8sVersion: (\S+)", COMPATIBILITY.read_text())
    theirs = {minor: (least, most) for minor, least, most in rows}

    ours = shipped_versions().karpenter.kubernetes
    assert {minor: (each.least, each.most) for minor, each in ours.items()} == {minor: theirs[minor] for minor in ours}
    assert max(theirs, key=version_order) == max(ours, key=version_order)


def test_the_charts_are_what_the_lab_is_built_from() -> None:
    tools = (ROOT / "lab" / "flexspot" / "lab" / "tools" / "tools.yaml").read_text()

    assert f"karpenter/pkg/operator.Version={shipped_versions().chart(Chart.KARPENTER).version}" in tools
    assert f"kueue/pkg/version.GitVersion=v{shipped_versions().chart(Chart.KUEUE).version}" in tools


@pytest.mark.parametrize(
    "before,after,problem",
    [
        ("source: kube-proxy-page}", "source: hearsay}", "'hearsay' is not one of"),
        ("v1.33.10-eksbuild.13", "v1.33.10", "String should match pattern"),
        ('"1.33":\n', '"1.40":\n', "out of order"),
    ],
)
def test_an_incomplete_table_is_refused(tmp_path: Path, before: str, after: str, problem: str) -> None:
    path = tmp_path / "versions.yaml"
    path.write_text(SHIPPED.read_text().replace(before, after, 1))

    with pytest.raises(DataFileError, match=problem):
        read_records(path, VersionTable)


def test_builds_of_a_version_are_in_order_of_their_numbers() -> None:
    assert sorted(["v1.14.3-eksbuild.23", "v1.14.3-eksbuild.3", "v1.9.3-eksbuild.39"], key=version_order) == [
        "v1.9.3-eksbuild.39",
        "v1.14.3-eksbuild.3",
        "v1.14.3-eksbuild.23",
    ]
