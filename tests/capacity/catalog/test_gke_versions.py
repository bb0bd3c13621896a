"""GKE's versions: each first one has a source, and a version that is not whole is read as GKE's API reads it."""

from __future__ import annotations

from itertools import pairwise

import pytest

from capacity.catalog.data_files import Source, read_records
from capacity.catalog.gke_versions import _FILE, GkeFeature, _VersionFile, gke_floors, is_below, is_one_release

RELEASES = ("1.34.9-gke.5000000", "1.35.0-gke.900000", "1.35.0-gke.1171000", "1.35.2-gke.10", "1.36.0-gke.1")
"""Oldest first; their numbers are not in the order of texts."""


def test_every_feature_has_a_first_version_with_a_source_of_its_own() -> None:
    sources: dict[GkeFeature, Source] = read_records(_FILE, _VersionFile).sources

    assert set(sources) == set(gke_floors()) == set(GkeFeature)
    assert all(is_one_release(floor.least) for floor in gke_floors().values())


@pytest.mark.parametrize("alias,newest", [("1.34", RELEASES[0]), ("1.35", RELEASES[3]), ("1.35.0", RELEASES[2]), ("1.36", RELEASES[4])])
def test_an_alias_is_below_a_floor_exactly_when_the_newest_release_that_it_fits_is(alias: str, newest: str) -> None:
    assert [is_below(alias, floor) for floor in RELEASES] == [RELEASES.index(newest) < place for place in range(len(RELEASES))]


def test_releases_are_in_the_order_of_their_numbers() -> None:
    assert all(is_below(older, newer) and not is_below(newer, older) for older, newer in pairwise(RELEASES))
