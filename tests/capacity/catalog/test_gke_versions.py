"""GKE's versions: each first version has a source, and an incomplete version is interpreted as GKE's API does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flexspot.capacity.catalog.data_files import Source, read_records
from flexspot.capacity.catalog.versions import _GKE, GkeFeature, _GkeFile, gke_floors, is_below, names_a_patch

ROOT = Path(__file__).parents[3]

LABELS = {
    ("capacity/flexspot/capacity/plan/pools.py", version) for version in ("1.29.2-gke.1355000", "1.29.3-gke.1093000", "1.29.2-gke.1108000")
}
"""Version since which the autoscaler knows labels of nodes: older than all versions in channels."""

RELEASES = ("1.34.9-gke.5000000", "1.35.0-gke.900000", "1.35.0-gke.1171000", "1.35.2-gke.10", "1.36.0-gke.1")
"""Versions, the oldest first; their numeric order differs from their order as text."""


def test_every_feature_has_a_first_version_with_a_source_of_its_own() -> None:
    sources: dict[GkeFeature, Source] = read_records(_GKE, _GkeFile).sources

    assert set(sources) == set(gke_floors()) == set(GkeFeature)
    assert all(names_a_patch(floor.least) for floor in gke_floors().values())


def test_first_versions_of_gke_are_only_in_the_table() -> None:
    """A version elsewhere would not be checked. Guides name only versions of the table and of the cloud's own pages."""
    table = {version for floor in gke_floors().values() for version in (floor.least, floor.on_autopilot)}
    written = {
        (str(path.relative_to(ROOT)), version)
        for room in (
            "components",
            "capacity/flexspot/capacity/plan",
            "capacity/flexspot/capacity/settings",
            "infra",
            "policies/flexspot/policies/rules",
        )
        for path in (ROOT / room).rglob("*.py")
        for version in re.findall(r"\b1\.\d+\.\d+-gke\.\d+", path.read_text(encoding="utf-8"))
    }

    assert written, "docstrings name some"
    assert {(path, version) for path, version in written if version not in table} <= LABELS


@pytest.mark.parametrize("alias,newest", [("1.34", RELEASES[0]), ("1.35", RELEASES[3]), ("1.35.0", RELEASES[2]), ("1.36", RELEASES[4])])
def test_an_alias_is_below_a_floor_exactly_when_the_newest_release_that_it_fits_is(alias: str, newest: str) -> None:
    assert [is_below(alias, floor) for floor in RELEASES] == [RELEASES.index(newest) < place for place in range(len(RELEASES))]
