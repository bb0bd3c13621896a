"""ComputeClass: priorities of named pools and of pools that GKE creates, with explicit defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pulumi
import pytest

from flexspot.components.gke.compute_class import ComputeClass, ComputeClassArgs

if TYPE_CHECKING:
    from component_types import Outputs, Refusal, Register

OBJECT = "kubernetes:cloud.google.com/v1:ComputeClass"

SPOT = {"machine": "g2-standard-8", "accelerator": "nvidia-l4", "gpus": 1, "capacity_type": "spot"}
FLEX = SPOT | {"capacity_type": "flex-start"}
ACCOUNT = {"service_account": "nodes@acme-ml.iam.gserviceaccount.com"}
SEVEN_DAYS = 604_800


def args(*priorities: dict[str, Any], **changes: Any) -> ComputeClassArgs:
    arguments: ComputeClassArgs = {"name": "inference-l4", "priorities": []}
    arguments.update({"priorities": list(priorities)} | changes)  # pyrefly: ignore[no-matching-overload] -- some arguments are invalid on purpose
    return arguments


def spec(register: Register, *priorities: dict[str, Any], **changes: Any) -> dict[str, Any]:
    [made] = register(lambda: ComputeClass("inference", args(*priorities, **changes))).of(OBJECT)
    return made["spec"]


def test_a_class_of_named_pools_creates_none_and_uses_no_others(register: Register) -> None:
    named = args({"pools": ["l4-spot"]}, {"pools": ["l4-dws", "l4-od"]}, labels={"flexspot.dev/owner": "ann"})
    [made] = register(lambda: ComputeClass("inference", named)).of(OBJECT)

    assert made["metadata"] == {"name": "inference-l4", "labels": {"flexspot.dev/owner": "ann"}}
    assert made["spec"] == {
        "priorities": [{"nodepools": ["l4-spot"]}, {"nodepools": ["l4-dws", "l4-od"]}],
        "nodePoolAutoCreation": {"enabled": False},
        "whenUnsatisfiable": "DoNotScaleUp",
        "activeMigration": {"optimizeRulePriority": False},
        "autoscalingPolicy": {"consolidationDelayMinutes": 10},
    }


def test_spot_and_flex_start_pools_are_created_before_a_capped_pool(register: Register) -> None:
    made = spec(register, SPOT, FLEX, {"pools": ["l4-od"]}, **ACCOUNT)

    gpu = {"type": "nvidia-l4", "count": 1, "driverVersion": "default"}
    machine = {"machineType": "g2-standard-8", "gpu": gpu, "storage": {"bootDiskSize": 200}, "location": {"locationPolicy": "ANY"}}
    assert made["priorities"] == [
        {**machine, "spot": True},
        {**machine, "flexStart": {"enabled": True}, "maxRunDurationSeconds": SEVEN_DAYS},
        {"nodepools": ["l4-od"]},
    ]
    assert made["nodePoolAutoCreation"] == {"enabled": True}
    assert made["nodePoolConfig"] == {
        "serviceAccount": "nodes@acme-ml.iam.gserviceaccount.com",
        "imageType": "cos_containerd",
        "imageStreaming": {"enabled": True},
    }


def test_other_options_can_be_set(register: Register) -> None:
    zones = ["us-central1-a"]
    made = spec(
        register,
        {**SPOT, "zones": zones, "driver": "disabled", "max_run_seconds": 3600, "shutdown_grace_seconds": 120, "boot_disk_gib": 50},
        {**FLEX, "max_run_seconds": 7200},
        consolidation_delay_minutes=1440,
        service_account=pulumi.Output.from_input("nodes@acme"),
    )

    spot, flex = made["priorities"]
    assert spot["location"] == {"zones": zones, "locationPolicy": "ANY"}
    assert spot["gpu"]["driverVersion"] == "autoinstall-disabled"
    assert (spot["maxRunDurationSeconds"], spot["storage"]) == (3600, {"bootDiskSize": 50})
    assert spot["nodeSystemConfig"] == {"kubeletConfig": {"shutdownGracePeriodSeconds": 120, "shutdownGracePeriodCriticalPodsSeconds": 15}}
    assert flex["flexStart"] == {"enabled": True}
    assert flex["maxRunDurationSeconds"] == 7200
    assert made["autoscalingPolicy"] == {"consolidationDelayMinutes": 1440}
    assert made["nodePoolConfig"]["serviceAccount"] == "nodes@acme"


AUTOPILOT = {"autopilot": True, **ACCOUNT}
RESERVED = {**SPOT, "capacity_type": "reserved", "reservation": {"name": "bought", "project": "acme-shared"}}


def test_on_autopilot_gke_creates_every_priority_and_fields_of_standard_are_not_set(register: Register) -> None:
    paid = {**SPOT, "capacity_type": "on-demand", "zones": ["us-central1-a"]}
    made = spec(register, RESERVED, SPOT, FLEX, paid, **AUTOPILOT)

    gpu = {"type": "nvidia-l4", "count": 1, "driverVersion": "default"}
    machine = {"machineType": "g2-standard-8", "gpu": gpu, "storage": {"bootDiskSize": 200}}
    assert made["priorities"] == [
        {
            **machine,
            "spot": False,
            "reservations": {"affinity": "Specific", "specific": [{"name": "bought", "project": "acme-shared"}]},
            "location": {"locationPolicy": "BALANCED"},
        },
        {**machine, "spot": True, "location": {"locationPolicy": "ANY"}},
        {**machine, "flexStart": {"enabled": True}, "maxRunDurationSeconds": SEVEN_DAYS, "location": {"locationPolicy": "ANY"}},
        {**machine, "spot": False, "location": {"zones": ["us-central1-a"], "locationPolicy": "BALANCED"}},
    ]
    assert made["nodePoolAutoCreation"] == {"enabled": True}
    assert made["nodePoolConfig"] == {"serviceAccount": "nodes@acme-ml.iam.gserviceaccount.com"}


def test_its_name_is_an_output(outputs: Outputs) -> None:
    assert outputs(lambda: ComputeClass("inference", args({"pools": ["l4-spot"]}))) == {"name": "inference-l4"}


@pytest.mark.parametrize(
    "priorities,changes,problem",
    [
        ([], {}, "priorities (is empty): a class needs at least one"),
        ([{"pools": ["l4", "l4"]}], {}, "priorities[0]: pools (is l4, l4): must be at least one pool, each once"),
        ([{**SPOT, "pools": ["l4"]}], {}, "priorities[0]: pools (is l4): cannot be combined with accelerator, capacity_type"),
        ([{"machine": "g2-standard-8"}], ACCOUNT, "priorities[0]: accelerator, capacity_type, gpus: missing; set only pools"),
        (
            [SPOT, {**SPOT, "capacity_type": "on-demand"}],
            ACCOUNT,
            "priorities[1]: capacity_type (is on-demand): must be spot or flex-start",
        ),
        ([{**SPOT, "capacity_type": "reserved"}], ACCOUNT, "for other types, list a pool with a ceiling in pools"),
        ([{**SPOT, "gpus": 8}], ACCOUNT, "machine (is g2-standard-8): has 1 nvidia-l4 (requested: 8"),
        ([{**FLEX, "machine": "a3-edgegpu-8g", "accelerator": "nvidia-h100-80gb", "gpus": 8}], ACCOUNT, "machine (is a3-edgegpu-8g): DWS"),
        (
            [{**SPOT, "capacity_type": "on-demand", "machine": "a3-highgpu-1g", "accelerator": "nvidia-h100-80gb", "gpus": 1}],
            AUTOPILOT,
            "priorities[0]: machine (is a3-highgpu-1g): Google does not sell it on demand; use another machine, or spot",
        ),
        ([{**SPOT, "driver": "newest"}], ACCOUNT, "driver (is newest): must be one of default, latest, disabled"),
        ([{**SPOT, "boot_disk_gib": 0}], ACCOUNT, "boot_disk_gib (is 0): must be 10 to 65536"),
        ([{**SPOT, "max_run_seconds": 29}], ACCOUNT, "max_run_seconds (is 29): Spot allows 30 to 10368000"),
        ([{**SPOT, "shutdown_grace_seconds": 60}], ACCOUNT, "shutdown_grace_seconds (is 60): a ComputeClass allows 30 or 120"),
        ([{**FLEX, "shutdown_grace_seconds": 120}], ACCOUNT, "shutdown_grace_seconds (is 120): is only for spot"),
        ([{**FLEX, "max_run_seconds": SEVEN_DAYS + 1}], ACCOUNT, "max_run_seconds (is 604801): must be 600 (10 minutes) to 604800"),
        ([{**FLEX, "max_run_seconds": 0}], ACCOUNT, "max_run_seconds (is 0): must be 600"),
        ([{"pools": ["l4"]}], {"autopilot": True}, "priorities[0]: pools (is l4): Autopilot has no"),
        ([{**SPOT, "capacity_type": "queued"}], AUTOPILOT, "capacity_type (is queued): must be one of reserved, flex-start, spot, on-d"),
        ([{**RESERVED, "reservation": None}], AUTOPILOT, "reservation: is required with capacity_type reserved"),
        ([{**SPOT, "reservation": {"name": "bought"}}], AUTOPILOT, "reservation (is bought): is not allowed with capacity_type spot; set"),
        ([{**RESERVED, "max_run_seconds": 3600}], AUTOPILOT, "priorities[0]: max_run_seconds: reserved nodes have no time"),
        ([SPOT], {"autopilot": True}, "service_account: is missing, so GKE's pools would use the project's default one"),
        ([{"pools": ["l4"]}], ACCOUNT, "service_account: every priority names existing pools"),
        ([{"pools": ["l4"]}], {"consolidation_delay_minutes": 0}, "consolidation_delay_minutes (is 0): must be 1 to 1440"),
        ([{"pools": ["l4"]}], {"consolidation_delay_minutes": 1441}, "consolidation_delay_minutes (is 1441): must be 1 to 1440"),
        ([{"pools": ["l4"]}], {"name": "Inference"}, "name (is Inference): must be 1 to 63 lower-case letters, digits and inner hyphens"),
    ],
)
def test_arguments_that_gke_would_reject_are_refused_before_anything_is_registered(
    priorities: list[dict[str, Any]], changes: dict[str, Any], problem: str, refusal: Refusal
) -> None:
    assert problem in refusal(ComputeClass, "inference", args(*priorities, **changes))
