"""GpuNodePool: a Karpenter NodePool with taints, labels and a ceiling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from flexspot.components.karpenter.node_pools import GpuNodePool, GpuNodePoolArgs

if TYPE_CHECKING:
    from component_types import Outputs, Refusal, Register

NODE_POOL = "kubernetes:karpenter.sh/v1:NodePool"


def args(**changes: Any) -> GpuNodePoolArgs:
    # pyrefly: ignore[bad-return] -- some arguments are invalid on purpose
    return {
        "pool": "l4-spot",
        "machines": ["g6.xlarge"],
        "capacity_types": ["spot"],
        "node_labels": {"karpenter.sh/capacity-type": "spot", "karpenter.k8s.aws/instance-gpu-name": "l4"},
        "labels": {"flexspot.dev/owner": "ann"},
        "taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}],
        "max_gpus": 4,
        "max_nodes": 4,
        "max_vcpu": 16,
        "max_memory_mib": 65536,
        "idle_seconds": 60,
        "consolidates": False,
        "weight": None,
        "node_class": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "lab"},
    } | changes


def test_a_pool_has_its_ceiling_its_taints_and_labels_that_are_known_before_boot(register: Register) -> None:
    [pool] = register(lambda: GpuNodePool("l4-spot", args())).of(NODE_POOL)

    spec = pool["spec"]
    assert spec["limits"] == {"nvidia.com/gpu": "4", "nodes": "4", "cpu": "16", "memory": "65536Mi"}
    assert spec["template"]["spec"]["taints"] == [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]
    requirements = {each["key"]: each["values"] for each in spec["template"]["spec"]["requirements"]}
    assert requirements == {
        "karpenter.sh/capacity-type": ["spot"],
        "node.kubernetes.io/instance-type": ["g6.xlarge"],
        "karpenter.k8s.aws/instance-gpu-name": ["l4"],
    }
    assert pool["metadata"] == {"name": "l4-spot", "labels": {"flexspot.dev/owner": "ann"}}


NEURON = "aws.amazon.com/neuron"
OF_NEURON: dict[str, Any] = {
    "pool": "trn-spot",
    "machines": ["trn1.32xlarge"],
    "resource": NEURON,
    "gpus_per_node": 16,
    "node_labels": {"karpenter.k8s.aws/instance-accelerator-name": "trainium"},
    "taints": [{"key": NEURON, "value": "present", "effect": "NoSchedule"}],
    "max_gpus": 32,
    "max_nodes": 2,
    "max_vcpu": 256,
    "max_memory_mib": 2 * 524288,
}


def test_a_pool_of_neuron_machines_is_limited_tainted_and_selected_by_neuron_devices(register: Register) -> None:
    [pool] = register(lambda: GpuNodePool("trn-spot", args(**OF_NEURON))).of(NODE_POOL)

    assert pool["spec"]["limits"] == {NEURON: "32", "nodes": "2", "cpu": "256", "memory": "1048576Mi"}
    requirements = {each["key"]: each["values"] for each in pool["spec"]["template"]["spec"]["requirements"]}
    assert requirements["karpenter.k8s.aws/instance-accelerator-count"] == ["16"]
    assert "karpenter.k8s.aws/instance-gpu-count" not in requirements


def test_running_work_is_not_disturbed_by_expiry_drift_or_consolidation(register: Register) -> None:
    [pool] = register(lambda: GpuNodePool("l4-spot", args())).of(NODE_POOL)

    assert pool["spec"]["template"]["spec"]["expireAfter"] == "Never"
    assert pool["spec"]["disruption"]["consolidationPolicy"] == "WhenEmpty"
    assert pool["spec"]["disruption"]["budgets"] == [
        {"nodes": "100%", "reasons": ["Empty"]},
        {"nodes": "0", "reasons": ["Underutilized"]},
        {"nodes": "0", "reasons": ["Drifted"]},
    ]
    assert "weight" not in pool["spec"]


def test_a_pool_of_services_can_be_consolidated_a_tenth_at_a_time_and_has_a_weight(register: Register) -> None:
    [pool] = register(lambda: GpuNodePool("l4-spot", args(consolidates=True, idle_seconds=600, weight=90))).of(NODE_POOL)

    assert pool["spec"]["weight"] == 90
    assert pool["spec"]["disruption"]["consolidationPolicy"] == "WhenEmptyOrUnderutilized"
    assert pool["spec"]["disruption"]["consolidateAfter"] == "600s"
    assert {"nodes": "10%", "reasons": ["Underutilized"]} in pool["spec"]["disruption"]["budgets"]
    assert {"nodes": "10%", "reasons": ["Drifted"]} in pool["spec"]["disruption"]["budgets"], "or it would keep old images forever"


def test_the_component_has_the_inputs_that_policies_need_even_if_its_children_are_unknown(register: Register) -> None:
    [component] = register(lambda: GpuNodePool("l4-spot", args())).of("flexspot:index:GpuNodePool")

    assert component["max_gpus"] == 4
    assert component["taints"][0]["key"] == "nvidia.com/gpu"


def test_zones_families_and_gpus_restrict_machines_in_addition_to_the_labels_that_pods_select(register: Register) -> None:
    chosen = args(zones=["us-east-1b", "us-east-1a"], instance_families=["g6", "g5"], gpus_per_node=1, machines=["g6.xlarge", "g5.xlarge"])
    [pool] = register(lambda: GpuNodePool("l4-spot", chosen)).of(NODE_POOL)

    requirements = {each["key"]: each["values"] for each in pool["spec"]["template"]["spec"]["requirements"]}
    assert requirements == {
        "karpenter.sh/capacity-type": ["spot"],
        "node.kubernetes.io/instance-type": ["g6.xlarge", "g5.xlarge"],
        "topology.kubernetes.io/zone": ["us-east-1a", "us-east-1b"],
        "karpenter.k8s.aws/instance-family": ["g5", "g6"],
        "karpenter.k8s.aws/instance-gpu-count": ["1"],
        "karpenter.k8s.aws/instance-gpu-name": ["l4"],
    }
    assert {each["operator"] for each in pool["spec"]["template"]["spec"]["requirements"]} == {"In"}


def test_options_that_are_not_set_are_not_in_the_pool(register: Register) -> None:
    nothing = args(
        zones=[],
        instance_families=[],
        startup_taints=[],
        termination_grace_seconds=None,
        expire_after_seconds=None,
        quiet_hours=[],
        gpus_per_node=None,
    )
    [plain] = register(lambda: GpuNodePool("l4-spot", args())).of(NODE_POOL)
    [pool] = register(lambda: GpuNodePool("l4-spot", nothing)).of(NODE_POOL)

    assert pool == plain
    assert set(pool["spec"]["template"]["spec"]) == {"requirements", "nodeClassRef", "taints", "expireAfter"}


def test_startup_taints_have_no_empty_value_because_the_definition_rejects_it(register: Register) -> None:
    startup = [
        {"key": "ebs.csi.aws.com/agent-not-ready", "value": "", "effect": "NoExecute"},
        {"key": "cni", "value": "starting", "effect": "NoSchedule"},
    ]
    [pool] = register(lambda: GpuNodePool("l4-spot", args(startup_taints=startup))).of(NODE_POOL)

    assert pool["spec"]["template"]["spec"]["startupTaints"] == [
        {"key": "ebs.csi.aws.com/agent-not-ready", "effect": "NoExecute"},
        {"key": "cni", "value": "starting", "effect": "NoSchedule"},
    ]


def test_nodes_can_expire_and_their_drain_can_be_forced(register: Register) -> None:
    [pool] = register(lambda: GpuNodePool("l4-spot", args(expire_after_seconds=604_800, termination_grace_seconds=3600))).of(NODE_POOL)

    assert pool["spec"]["template"]["spec"]["expireAfter"] == "604800s"
    assert pool["spec"]["template"]["spec"]["terminationGracePeriod"] == "3600s"


def test_quiet_hours_stop_every_voluntary_removal_in_addition_to_the_other_budgets(register: Register) -> None:
    quiet = [{"schedule": "0 8 * * mon-fri", "hours": 10}, {"schedule": "@daily", "hours": 2}]
    [pool] = register(lambda: GpuNodePool("l4-spot", args(quiet_hours=quiet))).of(NODE_POOL)

    budgets = pool["spec"]["disruption"]["budgets"]
    assert len(budgets) == 5
    assert budgets[3:] == [
        {"nodes": "0", "schedule": "0 8 * * mon-fri", "duration": "10h"},
        {"nodes": "0", "schedule": "@daily", "duration": "2h"},
    ]


@pytest.mark.parametrize(
    "change,problem",
    [
        ({"max_gpus": 0}, "gpu-pool-without-limit: GpuNodePool l4-spot has max_gpus=0, max_nodes=4, max_vcpu=16, max_memory_mib=65536"),
        ({"max_nodes": 0}, "max_gpus=4, max_nodes=0, max_vcpu=16, max_memory_mib=65536; set each of these ceilings to at least 1"),
        ({"machines": []}, "machines: is empty; name at least one instance type"),
        ({"taints": []}, "gpu-pool-without-taint: GpuNodePool l4-spot has no taints; add one on nvidia.com/gpu"),
        ({"taints": [{"key": "team", "value": "x", "effect": "NoSchedule"}]}, "has taints on team; add one on nvidia.com/gpu"),
        ({"max_gpus": 5}, "gpu-limit-unreachable: GpuNodePool l4-spot has max_gpus=5, but with g6.xlarge max_nodes=4"),
        ({"max_gpus": 5}, "allow only 4; allow 5 nodes, 20 vCPU and 81920 MiB, or lower max_gpus"),
        ({"max_vcpu": 15}, "max_vcpu=15 and max_memory_mib=65536 allow only 3; allow 4 nodes, 16 vCPU and 65536 MiB"),
        ({"max_memory_mib": 65_535}, "max_memory_mib=65535 allow only 3; allow 4 nodes"),
        ({"max_nodes": 3}, "max_nodes=3, max_vcpu=16 and max_memory_mib=65536 allow only 3"),
        ({"machines": ["g6.xlarge", "g6.4xlarge"]}, "gpu-limit-unreachable: GpuNodePool l4-spot has max_gpus=4, but with g6.4xlarge"),
        (
            {"machines": ["p5.48xlarge"], "max_gpus": 16, "max_vcpu": 512, "max_memory_mib": 2 * 2_097_152 - 1},
            "allow only 8; allow 2 nodes, 384 vCPU and 4194304 MiB",
        ),
        ({"instance_families": ["g5"]}, "machines (is g6.xlarge): is not in instance_families (g5); add g6, or remove the machine"),
        ({"gpus_per_node": 4}, "gpus_per_node (is 4): g6.xlarge has 1; use that value, and only machines with the same"),
        ({"capacity_types": ["flex-start"]}, "capacity_types (is flex-start)"),
        (
            {"resource": "amd.com/gpu"},
            "resource (is amd.com/gpu): is not a resource of accelerators; use one of nvidia.com/gpu, aws.amazon.com/neuron",
        ),
        ({"resource": NEURON}, "resource (is aws.amazon.com/neuron): g6.xlarge has nvidia.com/gpu; use that value"),
        (
            {**OF_NEURON, "pool": "l4-spot", "taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]},
            "gpu-pool-without-taint: GpuNodePool l4-spot has taints on nvidia.com/gpu; add one on aws.amazon.com/neuron",
        ),
        ({"capacity_types": []}, "capacity_types (is empty): Karpenter's capacity types are reserved, spot, on-demand"),
        ({"weight": 0}, "weight (is 0): Karpenter accepts 1 to 100"),
        ({"weight": 101}, "weight (is 101): Karpenter accepts 1 to 100"),
        ({"idle_seconds": -1}, "idle_seconds (is -1): must be 0 or more"),
        ({"expire_after_seconds": 0}, "expire_after_seconds (is 0): must be 1 or more; leave it out for nodes that never expire"),
        ({"termination_grace_seconds": 0}, "termination_grace_seconds (is 0): must be 1 or more; leave it out for drains without"),
        ({"quiet_hours": [{"schedule": "8am", "hours": 1}]}, "quiet_hours.schedule (is '8am')"),
        ({"quiet_hours": [{"schedule": "0 8 * * sat-sun", "hours": 1}]}, "day of the week sat-sun goes from high to low"),
        ({"quiet_hours": [{"schedule": "@daily", "hours": 0}]}, "quiet_hours.hours (is 0): must be 1 or more"),
        (
            {"startup_taints": [{"key": "ebs.csi.aws.com/agent-not-ready", "value": "", "effect": "Never"}]},
            "startup_taints (is ebs.csi.aws.com/agent-not-ready:Never): Never is not an effect; use one of NoSchedule, PreferNoSchedule,",
        ),
        (
            {"startup_taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]},
            "startup_taints (is nvidia.com/gpu): is also in taints, which stay, but startup taints are removed; keep one of the two",
        ),
    ],
)
def test_unsafe_pools_are_refused_before_anything_is_registered(change: dict[str, Any], problem: str, refusal: Refusal) -> None:
    assert problem in refusal(GpuNodePool, "l4-spot", args(**change))


def test_machines_that_the_catalog_does_not_have_are_not_counted(register: Register) -> None:
    registered = register(lambda: GpuNodePool("l4-spot", args(machines=["g9.xlarge"], max_gpus=64, gpus_per_node=2)))

    assert len(registered.of(NODE_POOL)) == 1


def test_its_name_is_an_output(outputs: Outputs) -> None:
    assert outputs(lambda: GpuNodePool("l4", args())) == {"name": "l4-spot"}


def test_zones_given_by_id_are_required_by_the_label_of_ids(register: Register) -> None:
    [pool] = register(lambda: GpuNodePool("l4-spot", args(zones=["use1-az4", "use1-az1"]))).of(NODE_POOL)

    required = {each["key"]: each["values"] for each in pool["spec"]["template"]["spec"]["requirements"]}
    assert required["topology.k8s.aws/zone-id"] == ["use1-az1", "use1-az4"]
    assert "topology.kubernetes.io/zone" not in required
