"""In which region buckets and clusters are, as far as what was given says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from policies.inventory.cloud_resources import AwsProvider, GcsBucket, GkeCluster
from policies.values.unknown import UNKNOWN

if TYPE_CHECKING:
    from policies.inventory.cloud_resources import Bucket, Cluster
    from policies.inventory.views import Inventory
    from policies.values.unknown import Tri, Unknown

_ZONE = re.compile(r"(?P<region>[a-z]+-[a-z]+\d+)-[a-z]")

# Locations of Cloud Storage with several regions, and how the names of these begin. NAM4 is two regions of America, EUR4 of Europe.
_CONTINENTS = (("us", "us-"), ("nam", ("us-", "northamerica-")), ("eu", "europe-"), ("asia", "asia-"))
_SEVERAL_REGIONS = re.compile(r"us|eu|asia|(?:nam|eur|asia)\d+")


def region_of_cluster(cluster: Cluster, inventory: Inventory) -> str | Unknown | None:
    """The region; None where nothing that was given says it."""
    if isinstance(cluster, GkeCluster):
        location = cluster.fields.at("location").text()
        zone = _ZONE.fullmatch(location) if isinstance(location, str) else None
        return zone["region"] if zone else location
    return _aws_region(cluster, inventory)


def _aws_region(resource: Bucket | Cluster, inventory: Inventory) -> str | Unknown | None:
    """A resource's own region, or that of the one provider; with several, nobody says which makes the resource."""
    own = resource.fields.at("region")
    if not own.absent:
        return own.text()
    providers = {each.fields.at("region").text() for each in inventory.of(AwsProvider)}
    return next(iter(providers)) if len(providers) == 1 else None


def region_of_bucket(bucket: Bucket, inventory: Inventory) -> str | Unknown | None:
    """The region or the location, as it is written; None where nothing that was given says it."""
    return bucket.fields.at("location").text() if isinstance(bucket, GcsBucket) else _aws_region(bucket, inventory)


def is_near(bucket: Bucket, cluster: Cluster, inventory: Inventory) -> Tri | None:
    """Whether a bucket has its data in the region of a cluster; None where nothing says in which region one of them is."""
    region = region_of_cluster(cluster, inventory)
    chosen = bucket.fields.at("customPlacementConfig", "dataLocations").parts().fields
    places = [each.text() for each in chosen] or [region_of_bucket(bucket, inventory)]
    if UNKNOWN in (region, *places):
        return UNKNOWN
    return None if None in (region, *places) else any(_covers(str(place).lower(), str(region)) for place in places)


def _covers(location: str, region: str) -> bool:
    """Whether a location of Cloud Storage, in small letters, is the region, or several of which it may be one."""
    if not _SEVERAL_REGIONS.fullmatch(location):
        return location == region
    return any(location.startswith(name) and region.startswith(begins) for name, begins in _CONTINENTS)
