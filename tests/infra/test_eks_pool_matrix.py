"""The NodePool and node class of a pool, for every machine with accelerators and every capacity type of EKS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from settings_documents import changed

from flexspot.capacity.catalog.machines import Vendor, machines_of
from flexspot.capacity.plan.build import build_plan
from flexspot.capacity.settings.platform import EksSettings
from flexspot.capacity.settings.stack_file import parse_settings
from flexspot.components.karpenter.ec2_node_class import Ec2NodeClass, Ec2NodeClassArgs
from flexspot.components.karpenter.node_pools import GpuNodePool
from flexspot.components.shared_args import arguments
from flexspot.infra.declaring.eks_pools import driver_taints, gpu_node_pool_args, node_class_of_pool

if TYPE_CHECKING:
    from flexspot.capacity.catalog.machines import Gpu, Machine

Register = Callable[[Callable[[], object]], Any]

NODES = 3
# Names of Karpenter's AWS provider v1.14.1: the resource, the word in its labels, and whether a label has the memory of one device.
KINDS = {"nvidia": ("nvidia.com/gpu", "gpu", True), "aws": ("aws.amazon.com/neuron", "accelerator", False)}
MACHINES = sorted(name for name, machine in machines_of(Vendor.AWS).items() if machine.gpu and machine.zones)
NIGHTLY = pytest.mark.nightly(
    tested_by="test_any_machine_has_a_pool_at_any_capacity_type, test_reserved_pools_draw_on_their_own_reservations_and_no_other_pool_does"
)
COMMON: Ec2NodeClassArgs = {"node_class": "", "ami": "al2023@v20260903", "cluster": "test", "node_role": "nodes", "tags": {"owner": "ann"}}


@dataclass(frozen=True)
class Made:
    """The specs of one pool's NodePool and node class."""

    machine: Machine
    gpu: Gpu
    node_pool: dict[str, Any]
    node_class: dict[str, Any]

    @property
    def requirements(self) -> dict[str, list[str]]:
        return {each["key"]: each["values"] for each in self.node_pool["template"]["spec"]["requirements"]}


def made(register: Register, name: str, capacity_type: str, **options: Any) -> Made:
    machine = machines_of(Vendor.AWS)[name]
    assert machine.gpu is not None
    region = "us-east-1" if "us-east-1" in machine.zones else min(machine.zones)
    zone = machine.zones[region][0]
    reservation = {"pools.0.reservation": {"ids": ["cr-0a1b2c3d4e5f60718"]}} if capacity_type == "reserved" else {}
    changes: dict[str, Any] = {
        "region": region,
        # EKS needs at least two zones; only one of them must offer the machine.
        "zones": [zone, next(f"{region}{letter}" for letter in "ab" if f"{region}{letter}" != zone)],
        "pools.0.zones": [zone],
        "pools.0.machine": name,
        "pools.0.capacity_type": capacity_type,
        "pools.0.max_nodes": NODES,
        "classes.training.capacity": ["reserved", "spot", "on-demand"],
        "teams.0.shares": {"l4-spot": 1},
        **{f"pools.0.{key}": value for key, value in options.items()},
        **reservation,
    }
    node_pool, node_class = declared_pool(register, changes)
    return Made(machine, machine.gpu, node_pool["spec"], node_class["spec"])


def declared_pool(register: Register, changes: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the NodePool and the node class of the only pool of the smallest settings with `changes`."""
    settings = parse_settings(changed("eks", changes), "test")
    assert isinstance(settings, EksSettings)
    plan = build_plan(settings, "test")
    [pool], [wanted] = plan.pools, settings.pools

    def declare() -> None:
        GpuNodePool("pool", gpu_node_pool_args(plan, pool, wanted, driver_taints(settings)))
        Ec2NodeClass("class", arguments(Ec2NodeClassArgs, node_class_of_pool(plan, pool, wanted), COMMON))

    registered = register(declare)
    [node_pool] = registered.of("kubernetes:karpenter.sh/v1:NodePool")
    [node_class] = registered.of("kubernetes:karpenter.k8s.aws/v1:EC2NodeClass")
    return node_pool, node_class


@pytest.mark.parametrize("capacity_type", ["spot", *(pytest.param(each, marks=NIGHTLY) for each in ("on-demand", "reserved"))])
@pytest.mark.parametrize("name", MACHINES)
def test_any_machine_has_a_pool_at_any_capacity_type(name: str, capacity_type: str, register: Register) -> None:
    pool = made(register, name, capacity_type)

    assert pool.requirements["karpenter.sh/capacity-type"] == [capacity_type]
    assert pool.requirements["node.kubernetes.io/instance-type"] == [name]
    assert pool.requirements["karpenter.k8s.aws/instance-family"] == [name.partition(".")[0]]
    resource, label, tells_memory = KINDS[pool.gpu.manufacturer]
    of_devices = {key: values for key, values in pool.requirements.items() if "instance-gpu" in key or "instance-accelerator" in key}
    assert of_devices == {
        f"karpenter.k8s.aws/instance-{label}-name": [pool.gpu.name],
        f"karpenter.k8s.aws/instance-{label}-count": [str(pool.gpu.count)],
        **({f"karpenter.k8s.aws/instance-{label}-memory": [str(pool.gpu.memory_mib)]} if tells_memory else {}),
    }
    assert pool.node_pool["limits"] == {
        resource: str(NODES * pool.gpu.count),
        "nodes": str(NODES),
        "cpu": str(NODES * pool.machine.vcpu),
        "memory": f"{NODES * pool.machine.memory_mib}Mi",
    }
    node = pool.node_pool["template"]["spec"]
    taints = {taint["key"]: taint["effect"] for taint in node["taints"]}
    assert taints[resource] == "NoSchedule"
    assert len({"nvidia.com/gpu", "aws.amazon.com/neuron"} & taints.keys()) == 1
    assert pool.node_class["amiSelectorTerms"] == [{"alias": "al2023@v20260903"}], "Karpenter takes the variant for the machine by itself"
    assert ("flexspot.dev/capacity-type" in taints) == (capacity_type == "spot"), "only Spot is taken back"
    assert ("capacityReservationSelectorTerms" in pool.node_class) == (capacity_type == "reserved")
    assert (pool.node_class.get("instanceStorePolicy") == "RAID0") == (pool.machine.local_ssd_gb > 0)


def test_a_described_machine_is_declared_like_one_of_the_catalog(register: Register) -> None:
    described = {
        "name": "p7.48xlarge",
        "vcpu": 224,
        "memory_mib": 2_097_152,
        "gpu": {"name": "r100", "count": 8, "memory_mib": 294_912},
        "local_nvme_gb": 30_400,
        "efa_interfaces": 40,
        "efa_first_card": 1,
    }
    changes = {"machines": [described], "pools.0.machine": "p7.48xlarge", "pools.0.efa": True, "pools.0.max_nodes": NODES}
    node_pool, node_class = declared_pool(register, changes | {"teams.0.shares": {"l4-spot": 1}})

    requirements = {each["key"]: each["values"] for each in node_pool["spec"]["template"]["spec"]["requirements"]}
    assert requirements["node.kubernetes.io/instance-type"] == ["p7.48xlarge"]
    assert requirements["karpenter.k8s.aws/instance-gpu-memory"] == ["294912"]
    assert node_pool["spec"]["limits"]["nvidia.com/gpu"] == str(8 * NODES)
    assert node_class["spec"]["instanceStorePolicy"] == "RAID0"
    cards = [each["networkCardIndex"] for each in node_class["spec"]["networkInterfaces"]]
    assert cards == list(range(41)), "an address on card 0, EFA on 1 to 40: more than any machine of the catalog has"
