"""GkeGpuNodePool: its defaults and options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pulumi
import pytest
from gke_pool_args import COMPONENT, NODE_POOL, pool_args

from flexspot.components.gke.gpu_node_pool import GkeGpuNodePool

if TYPE_CHECKING:
    from component_types import Outputs, Register

GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


def made(register: Register, **changes: Any) -> dict[str, Any]:
    [pool] = register(lambda: GkeGpuNodePool("l4", pool_args(**changes))).of(NODE_POOL)
    return pool


def test_a_pool_of_a_zonal_cluster_is_in_its_zone_and_has_nodes_in_others_below_the_same_ceiling(register: Register) -> None:
    pool = made(register, cluster_zone="us-central1-c")

    assert pool == made(register) | {"location": "us-central1-c"}
    assert pool["nodeLocations"] == ["us-central1-a", "us-central1-b"]


def test_a_node_is_hardened_tainted_labelled_and_has_its_driver(register: Register) -> None:
    pool = made(register)

    assert (pool["name"], pool["initialNodeCount"], pool["ignoreNodeCountChanges"]) == ("l4-spot", 0, True)
    assert (pool["project"], pool["location"], pool["management"]) == ("acme-ml", "us-central1", {"autoUpgrade": True, "autoRepair": True})
    assert pool["nodeConfig"] == {
        "machineType": "g2-standard-8",
        "imageType": "COS_CONTAINERD",
        "spot": True,
        "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"},
        "guestAccelerators": [{"type": "nvidia-l4", "count": 1, "gpuDriverInstallationConfig": {"gpuDriverVersion": "DEFAULT"}}],
        "taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}],
        "resourceLabels": {"environment": "dev", "owner": "ann"},
        "serviceAccount": "nodes@acme-ml.iam.gserviceaccount.com",
        "oauthScopes": ["https://www.googleapis.com/auth/cloud-platform"],
        "workloadMetadataConfig": {"mode": "GKE_METADATA"},
        "shieldedInstanceConfig": {"enableSecureBoot": True, "enableIntegrityMonitoring": True},
        "diskSizeGb": 200,
        "diskType": "pd-balanced",
        "gcfsConfig": {"enabled": True},
        "gvnic": {"enabled": True},
    }


def test_spot_nodes_get_a_longer_grace_period_whose_last_15_seconds_are_for_system_pods(register: Register) -> None:
    node = made(register, shutdown_grace_seconds=120)["nodeConfig"]

    assert node["kubeletConfig"] == {"shutdownGracePeriodSeconds": 120, "shutdownGracePeriodCriticalPodsSeconds": 15}


@pytest.mark.parametrize("seconds,written", [(None, "604800s"), (600, "600s"), (604_800, "604800s")])
def test_a_flex_start_node_ends_after_its_run_time_seven_days_by_default(register: Register, seconds: int | None, written: str) -> None:
    assert made(register, capacity_type="flex-start", max_run_seconds=seconds)["nodeConfig"]["maxRunDuration"] == written


@pytest.mark.parametrize(
    "reservation,value",
    [
        ({"name": "l4-block"}, "l4-block"),
        ({"name": "l4-block", "project": "acme-capacity"}, "projects/acme-capacity/reservations/l4-block"),
        ({"name": "h200", "block": "h200-block-0001"}, "h200/reservationBlocks/h200-block-0001"),
        (
            {"name": "b200", "project": "acme-capacity", "block": "one", "sub_block": "one-sub-3"},
            "projects/acme-capacity/reservations/b200/reservationBlocks/one/reservationSubBlocks/one-sub-3",
        ),
    ],
)
def test_a_reserved_pool_uses_its_reservation(register: Register, reservation: dict[str, str], value: str) -> None:
    pool = made(register, capacity_type="reserved", reservation={"use": "specific"} | reservation)

    assert pool["nodeConfig"]["reservationAffinity"] == {
        "consumeReservationType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": [value],
    }


def test_a_reserved_pool_can_use_any_reservation(register: Register) -> None:
    pool = made(register, capacity_type="reserved", reservation={"use": "any"})

    assert pool["nodeConfig"]["reservationAffinity"] == {"consumeReservationType": "ANY_RESERVATION_THEN_FAIL"}


def test_gpus_are_shared_or_divided_or_both(register: Register) -> None:
    shared = made(register, gpu_sharing={"strategy": "mps", "clients_per_gpu": 48}, gpu_driver="latest")["nodeConfig"]
    divided = made(
        register,
        machine="a2-highgpu-1g",
        accelerator="nvidia-tesla-a100",
        mig_partition="1g.5gb",
        gpu_sharing={"strategy": "time-sharing", "clients_per_gpu": 2},
    )["nodeConfig"]

    [gpu] = shared["guestAccelerators"]
    assert gpu["gpuSharingConfig"] == {"gpuSharingStrategy": "MPS", "maxSharedClientsPerGpu": 48}
    assert gpu["gpuDriverInstallationConfig"] == {"gpuDriverVersion": "LATEST"}
    [gpu] = divided["guestAccelerators"]
    assert gpu["gpuPartitionSize"] == "1g.5gb"
    assert gpu["gpuSharingConfig"] == {"gpuSharingStrategy": "TIME_SHARING", "maxSharedClientsPerGpu": 2}


def test_a_driver_that_google_has_not_signed_boots_without_secure_boot(register: Register) -> None:
    node = made(register, gpu_driver="disabled")["nodeConfig"]

    assert node["shieldedInstanceConfig"] == {"enableSecureBoot": False, "enableIntegrityMonitoring": True}
    assert node["guestAccelerators"][0]["gpuDriverInstallationConfig"] == {"gpuDriverVersion": "INSTALLATION_DISABLED"}


def test_local_ssds_that_come_with_the_machine_or_are_added_are_ephemeral_storage(register: Register) -> None:
    a3: dict[str, Any] = {"machine": "a3-highgpu-8g", "accelerator": "nvidia-h100-80gb", "gpus_per_node": 8}

    assert made(register, **a3)["nodeConfig"]["ephemeralStorageLocalSsdConfig"] == {"localSsdCount": 16}
    assert made(register, local_ssd_disks=1)["nodeConfig"]["ephemeralStorageLocalSsdConfig"] == {"localSsdCount": 1}


def test_a_node_boots_from_its_machines_disk_type_with_a_given_key(register: Register) -> None:
    key = "projects/acme-keys/locations/us-central1/keyRings/ai/cryptoKeys/disks"
    a4x: dict[str, Any] = {"machine": "a4x-highgpu-4g", "accelerator": "nvidia-gb200", "gpus_per_node": 4, "boot_disk_kms_key": key}
    bare: dict[str, Any] = {"machine": "a3-ultragpu-8g-nolssd", "accelerator": "nvidia-h200-141gb", "gpus_per_node": 8}
    node, without = made(register, **a4x)["nodeConfig"], made(register, **bare)["nodeConfig"]

    assert (node["diskType"], node["bootDiskKmsKey"]) == ("hyperdisk-balanced", key)
    assert node["ephemeralStorageLocalSsdConfig"] == {"localSsdCount": 4}, "of 3,000 GB each"
    assert without["diskType"] == "hyperdisk-balanced"
    assert {"bootDiskKmsKey", "ephemeralStorageLocalSsdConfig"} & without.keys() == set()


def test_nodes_are_confidential_if_their_machine_supports_it(register: Register) -> None:
    h100: dict[str, Any] = {"machine": "a3-highgpu-1g", "accelerator": "nvidia-h100-80gb"}
    pool = made(register, **h100, confidential_nodes="tdx")

    assert pool["nodeConfig"]["confidentialNodes"] == {"enabled": True, "confidentialInstanceType": "TDX"}
    assert "confidentialNodes" not in made(register, **h100)["nodeConfig"]


def test_other_options_of_a_node_can_be_set(register: Register) -> None:
    pool = made(
        register,
        min_nodes=1,
        node_labels={"flexspot.dev/class": "training"},
        taints=[GPU_TAINT, {"key": "flexspot.dev/class", "value": "training", "effect": "NoExecute"}],
        zones=["us-central1-a"],
        compact_placement=True,
        boot_disk_gib=200,
        secondary_boot_disk_images=["projects/acme-ml/global/images/torch"],
        surge={"max_surge": 2, "max_unavailable": 0},
        max_pods_per_node=32,
    )

    assert pool["autoscaling"]["totalMinNodeCount"] == 1
    assert pool["placementPolicy"] == {"type": "COMPACT"}
    assert pool["maxPodsPerNode"] == 32
    node = pool["nodeConfig"]
    assert node["labels"] == {"flexspot.dev/class": "training"}
    assert [taint["effect"] for taint in node["taints"]] == ["NO_SCHEDULE", "NO_EXECUTE"]
    assert node["diskSizeGb"] == 200
    assert node["secondaryBootDisks"] == [{"diskImage": "projects/acme-ml/global/images/torch", "mode": "CONTAINER_IMAGE_CACHE"}]
    assert pool["upgradeSettings"] == {"strategy": "SURGE", "maxSurge": 2, "maxUnavailable": 0}


def test_nodes_stay_as_they_are_until_their_version_is_no_longer_supported(register: Register) -> None:
    held = made(register, hold_upgrades=True)

    assert held["maintenancePolicies"] == [{"exclusionUntilEndOfSupports": [{"enabled": True}]}]
    assert "maintenancePolicies" not in made(register)


def test_outputs_of_other_resources_are_accepted_without_checks(register: Register, outputs: Outputs) -> None:
    made_by_others = {"cluster": pulumi.Output.from_input("platform"), "service_account": pulumi.Output.from_input("nodes@acme")}
    pool = made(register, **made_by_others)

    assert (pool["cluster"], pool["nodeConfig"]["serviceAccount"]) == ("platform", "nodes@acme")
    assert outputs(lambda: GkeGpuNodePool("l4", pool_args())) == {"name": "l4-spot"}


def test_the_component_has_the_inputs_that_policies_need(register: Register) -> None:
    [component] = register(lambda: GkeGpuNodePool("l4", pool_args())).of(COMPONENT)

    assert component["max_nodes"] == 4
    assert component["taints"][0]["key"] == "nvidia.com/gpu"
