"""Karpenter with its KWOK provider: the real provisioner, over instance types from the machine catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab.instance_types import instance_types_json
from lab.kubeconfig import kubeconfig
from lab.part import Part
from lab.tools.families import family_named

if TYPE_CHECKING:
    from lab.part import LabContext


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
