"""Model caches: a folder of a bucket of the cluster's own region, read only, through a claim that any pods mount at once."""

from __future__ import annotations

from typing import Any

import pytest
from service_plans import of_kind, service, standing_plan
from workload_plans import job_of

from capacity.catalog.platform import Platform
from capacity.workloads.models import mount_model_cache
from capacity.workloads.requests import WorkloadError


@pytest.mark.parametrize(
    "stack,driver,options",
    [
        ("prod-gke", "gcsfuse.csi.storage.gke.io", {"only-dir=shared/models", "file-cache:max-size-mb:102400"}),
        ("prod-eks", "s3.csi.aws.com", {"region=us-east-1", "prefix=shared/models/", "read-only"}),
    ],
)
def test_volume_and_claim_are_bound_to_each_other_and_read_only(stack: str, driver: str, options: set[str]) -> None:
    volume, claim = service(stack, "model-cache", team="nlp")

    assert volume["metadata"]["name"] == claim["spec"]["volumeName"] == "nlp.desk"
    assert (volume["spec"]["claimRef"]["namespace"], volume["spec"]["claimRef"]["name"]) == ("nlp", "desk")
    assert volume["spec"]["accessModes"] == claim["spec"]["accessModes"] == ["ReadOnlyMany"]
    assert (volume["spec"]["csi"]["driver"], volume["spec"]["csi"]["readOnly"]) == (driver, True)
    assert options <= set(volume["spec"]["mountOptions"])


def test_what_is_kept_on_a_node_has_a_ceiling_and_none_is_kept_where_it_is_zero() -> None:
    kept, none = (of_kind(service("prod-eks", "model-cache", cache_gib=gib), "PersistentVolume")["spec"]["csi"] for gib in (200, 0))

    assert kept["volumeAttributes"] | {"cache": "emptyDir", "cacheEmptyDirSizeLimit": "200Gi"} == kept["volumeAttributes"]
    assert "cache" not in none["volumeAttributes"]
    options = of_kind(service("prod-gke", "model-cache", cache_gib=0), "PersistentVolume")["spec"]["mountOptions"]
    assert not [each for each in options if each.startswith("file-cache")]


def test_a_job_mounts_it_like_a_server() -> None:
    template = job_of("prod-gke")["spec"]["template"]

    mount_model_cache(template, Platform.GKE, "weights", "/models", cache_gib=10)

    assert template["metadata"]["annotations"]["gke-gcsfuse/ephemeral-storage-limit"] == "15Gi"
    assert template["spec"]["containers"][0]["volumeMounts"][-1] == {"name": "models", "mountPath": "/models", "readOnly": True}


@pytest.mark.parametrize(
    "stack,fields,told",
    [
        ("prod-gke", {"bucket_region": "US"}, "bucket_region (is 'US'): is not the cluster's region, us-central1"),
        ("prod-eks", {"bucket_region": "eu-west-1"}, "copy them into a bucket in us-east-1"),
        ("local", {}, "cannot be mounted: the local platform has no bucket; take a stack of gke or eks"),
        ("prod-eks", {"team": "serach"}, "is not a team; did you mean search?"),
        ("prod-eks", {"bucket": "s3://models"}, "allowed: the name of a bucket, without gs:// or s3://"),
        ("prod-eks", {"folder": "/models/"}, "allowed: a folder of lower-case names"),
        ("prod-eks", {"size": 3}, "size: is not an input"),
    ],
)
def test_weights_that_would_cross_regions_or_cannot_be_mounted_are_refused(stack: str, fields: dict[str, Any], told: str) -> None:
    with pytest.raises(WorkloadError) as refused:
        service(stack, "model-cache", **fields)

    assert told in str(refused.value)


def test_a_volumes_name_that_no_socket_has_room_for_is_refused() -> None:
    with pytest.raises(WorkloadError, match="63 are allowed: shorten it"):
        service(standing_plan(team="t" * 30), "model-cache", name="w" * 40)
