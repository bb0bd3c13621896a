"""Karpenter with its KWOK provider, and KWOK, which plays the kubelets of the nodes that it makes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capacity.catalog.capacity_type import CapacityType
from capacity.catalog.machines import Cloud, Machine, machines_of
from capacity.catalog.node_labels import CAPACITY_TYPE_LABEL, EFA_RESOURCE, ZONE_LABEL, karpenter_aws_labels
from capacity.catalog.price_book import prices_of
from lab.part import Part, kubeconfig
from lab.tools.build import family_named

if TYPE_CHECKING:
    from lab.part import LabContext


_OWN_STAGES = Path(__file__).parents[1] / "stages"

# Karpenter marks the nodes that it makes for KWOK with this label.
_FAKE_NODES = "kwok.x-k8s.io/node=fake"


def kwok(lab: LabContext) -> Part:
    """KWOK over the fake nodes.

    A Job's pod runs as long as its annotation `pod-complete.stage.kwok.x-k8s.io/delay` says (a Go duration, with
    `.../jitter-delay` as the upper bound of a random choice; set both alike), 1 to 6 s without it. How a deleted pod ends
    is in lab/stages.
    """
    settings = lab.home.settings("kwok")
    own_kubeconfig = settings / "kubeconfig"
    stages = [path.read_text(encoding="utf-8") for path in (*lab.tools.assets("kwok", "stages"), *sorted(_OWN_STAGES.iterdir()))]
    return Part(
        name="kwok",
        version=family_named("kwok").version,
        ports=("kwok",),
        probe=f"http://127.0.0.1:{lab.ports['kwok']}/readyz",
        files={own_kubeconfig: kubeconfig(lab, "admin"), settings / "stages.yaml": "\n---\n".join(stages)},
        command=[
            str(lab.tools.binary("kwok")),
            f"--kubeconfig={own_kubeconfig}",
            f"--config={settings / 'stages.yaml'}",
            f"--manage-nodes-with-label-selector={_FAKE_NODES}",
            f"--server-address=127.0.0.1:{lab.ports['kwok']}",
            "--node-ip=127.0.0.1",
            # KWOK takes a new identity at each start and waits for the leases of the one before to run out.
            "--node-lease-duration-seconds=15",
        ],
    )


REGION = "us-east-1"
"""The region whose zones and prices the lab has."""

_HYPERVISOR = "karpenter.k8s.aws/instance-hypervisor"

# What an EKS node's root volume gives pods in the shipped node classes; the lab has no disks.
_EPHEMERAL_STORAGE = "100Gi"


def instance_types_json() -> str:
    """The content of INSTANCE_TYPES_FILE_PATH: every machine of the catalog that has a price in the lab's region."""
    types = [_instance_type(machine) for machine in machines_of(Cloud.AWS).values()]
    return json.dumps([each for each in types if each["offerings"]], indent=2)


def _instance_type(machine: Machine) -> dict[str, Any]:
    resources = {"cpu": str(machine.vcpu), "memory": f"{machine.memory_mib}Mi", "ephemeral-storage": _EPHEMERAL_STORAGE}
    if machine.gpu is not None:
        resources[machine.gpu.accelerator.resource] = str(machine.gpu.count)
    if machine.efa_interfaces:
        # As Karpenter's own provider counts them, of the node class's interfaces: pkg/providers/instancetype/types.go of v1.14.1, efas.
        resources[EFA_RESOURCE] = str(machine.efa_interfaces)
    return {
        "name": machine.name,
        "architecture": "amd64",
        "operatingSystems": ["linux"],
        "resources": resources,
        "offerings": _offerings(machine),
    }


def _hypervisor(machine: str) -> str:
    """EC2's word, as Karpenter's own provider takes it over: none for bare metal; the catalog has no family from before Nitro."""
    return "" if machine.partition(".")[2].startswith("metal") else "nitro"


def _offerings(machine: Machine) -> list[dict[str, Any]]:
    # Labels stand with each offering because that is the one place from which the KWOK provider learns labels of its own.
    labels = karpenter_aws_labels(machine) | {_HYPERVISOR: _hypervisor(machine.name)}
    prices = prices_of(Cloud.AWS)
    return [
        {
            "Price": float(price.usd_per_hour),
            "Available": True,
            "Requirements": [
                {"key": key, "operator": "In", "values": [value]}
                for key, value in {CAPACITY_TYPE_LABEL: capacity_type, ZONE_LABEL: zone, **labels}.items()
            ],
        }
        for capacity_type in CapacityType
        for zone in machine.zones.get(REGION, [])
        if (price := prices.find(machine.name, REGION, capacity_type))
    ]


def karpenter(lab: LabContext) -> Part:
    """Karpenter, whose nodes are fake but whose decisions are not."""
    settings = lab.home.settings("karpenter")
    return Part(
        name="karpenter",
        version=family_named("karpenter").version,
        ports=("karpenter-health", "karpenter-metrics"),
        probe=f"http://127.0.0.1:{lab.ports['karpenter-health']}/readyz",
        environment={
            "KUBECONFIG": str(settings / "kubeconfig"),
            "DISABLE_LEADER_ELECTION": "true",
            "SYSTEM_NAMESPACE": "kube-system",
            "METRICS_PORT": str(lab.ports["karpenter-metrics"]),
            "HEALTH_PROBE_PORT": str(lab.ports["karpenter-health"]),
            "INSTANCE_TYPES_FILE_PATH": str(settings / "instance-types.json"),
        },
        files={settings / "kubeconfig": kubeconfig(lab, "admin"), settings / "instance-types.json": instance_types_json()},
        command=[str(lab.tools.binary("karpenter"))],
    )
