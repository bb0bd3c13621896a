"""Model caches: a folder of a bucket in the cluster's region, read-only, through a claim that any pods mount at once."""

from __future__ import annotations

import pytest
from service_plans import of_kind, service, standing_plan
from workload_plans import job_of

from flexspot.capacity.catalog.platform import Platform
from flexspot.capacity.workloads.models import mount_model_cache
from flexspot.capacity.workloads.requests import WorkloadError


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


def test_the_cache_on_a_node_has_a_limit_and_zero_means_no_cache() -> None:
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


def test_a_volumes_name_that_no_socket_has_room_for_is_refused() -> None:
    with pytest.raises(WorkloadError, match="shorten it: at most 63 are allowed"):
        service(standing_plan(team="t" * 30), "model-cache", name="w" * 40)
