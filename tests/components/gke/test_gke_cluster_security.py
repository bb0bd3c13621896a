"""GkeCluster: customer keys, security posture, Binary Authorization, and confidential system nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from gke_cluster_args import AUTOPILOT, CEILINGS, CLUSTER, NODE_POOL, args

from flexspot.components.gke.cluster import GkeCluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from component_types import Refusal, Register


KEY = "projects/acme-keys/locations/us-central1/keyRings/ai/cryptoKeys/"
ALL = {
    "secrets_kms_key": f"{KEY}etcd",
    "boot_disk_kms_key": f"{KEY}disks",
    "posture": "basic",
    "vulnerability_scanning": "disabled",
    "binary_authorization": "project_singleton_policy_enforce",
}


def test_security_options_use_the_apis_values(cluster_of: Callable[..., dict[str, Any]]) -> None:
    cluster = cluster_of(security=ALL)

    assert cluster["databaseEncryption"] == {"state": "ENCRYPTED", "keyName": f"{KEY}etcd"}
    assert cluster["securityPostureConfig"] == {"mode": "BASIC", "vulnerabilityMode": "VULNERABILITY_DISABLED"}
    assert cluster["binaryAuthorization"] == {"evaluationMode": "PROJECT_SINGLETON_POLICY_ENFORCE"}


def test_posture_and_scanning_are_independent(cluster_of: Callable[..., dict[str, Any]]) -> None:
    assert cluster_of(security={"posture": "disabled"})["securityPostureConfig"] == {"mode": "DISABLED"}
    scanned = cluster_of(security={"vulnerability_scanning": "enterprise"})
    assert scanned["securityPostureConfig"] == {"vulnerabilityMode": "VULNERABILITY_ENTERPRISE"}


def test_every_node_boots_from_a_disk_with_that_key(register: Register) -> None:
    made = register(lambda: GkeCluster("gke", args(security=ALL, auto_provisioning=CEILINGS)))
    [cluster], [system] = made.of(CLUSTER), made.of(NODE_POOL)

    assert system["nodeConfig"]["bootDiskKmsKey"] == f"{KEY}disks"
    assert cluster["nodeConfig"]["bootDiskKmsKey"] == f"{KEY}disks", "the pool without which GKE makes no cluster too"
    assert cluster["clusterAutoscaling"]["autoProvisioningDefaults"]["bootDiskKmsKey"] == f"{KEY}disks"


def test_autopilot_has_the_same_security_options(cluster_of: Callable[..., dict[str, Any]]) -> None:
    cluster = cluster_of(**AUTOPILOT, security=ALL)

    assert cluster["clusterAutoscaling"]["autoProvisioningDefaults"]["bootDiskKmsKey"] == f"{KEY}disks"
    assert cluster["databaseEncryption"]["keyName"] == f"{KEY}etcd"


def test_system_nodes_are_confidential_or_boot_from_hyperdisk_if_their_machine_supports_it(register: Register) -> None:
    def node(**pool: Any) -> dict[str, Any]:
        return register(lambda: GkeCluster("gke", args(system_pool=pool))).of(NODE_POOL)[0]["nodeConfig"]

    tdx = node(machine="c3-standard-4", confidential_nodes="tdx")
    assert tdx["confidentialNodes"] == {"enabled": True, "confidentialInstanceType": "TDX"}
    assert "confidentialNodes" not in node(machine="c3-standard-4")
    assert node(machine="h4d-standard-192")["diskType"] == "hyperdisk-balanced"
    assert node(machine="a-machine-of-tomorrow")["diskType"] == "pd-balanced"


@pytest.mark.parametrize(
    "changes,problem",
    [
        ({"security": {"secrets_kms_key": "etcd"}}, "security.secrets_kms_key (is 'etcd'): does not have the required form"),
        ({"security": {"posture": "enterprise"}}, "security.posture (is 'enterprise'): is not one of the allowed values"),
        (
            {"system_pool": {"machine": "e2-standard-4", "confidential_nodes": "sev"}},
            "by sev; leave it out; machines without GPUs that have it: n2d-",
        ),
        (
            {"system_pool": {"machine": "e2-standard-4", "confidential_nodes": "sgx"}},
            "confidential_nodes (is 'sgx'): is not one of the",
        ),
    ],
)
def test_invalid_arguments_are_refused_before_anything_is_registered(changes: dict[str, Any], problem: str, refusal: Refusal) -> None:
    assert problem in refusal(GkeCluster, "gke", args(**changes))
