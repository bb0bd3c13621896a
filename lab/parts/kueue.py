"""Kueue: queues, quotas and preemption, with its webhooks on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from lab.kubeconfig import kubeconfig
from lab.part import Part
from lab.tools.families import family_named

if TYPE_CHECKING:
    from lab.part import Ground

NAMESPACE = "kueue-system"
WEBHOOK_SECRET = "kueue-webhook-server-cert"  # noqa: S105 -- the name of a Secret, not its content

INTEGRATIONS = ("batch/job", "pod", "deployment", "statefulset")
"""The kinds of workload that the lab's Kueue manages: those whose API a bare Kubernetes has."""


def kueue(ground: Ground) -> Part:
    """Kueue outside a cluster.

    Its internal certificate management stays on, over a Secret that already holds the lab's authority (see lab.manifests):
    without it, Kueue 0.19 wants a metrics certificate under /etc, which would need root.
    """
    settings = ground.home.settings("kueue")
    own_kubeconfig = settings / "kubeconfig"
    certificates = settings / "certificates"
    configuration = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": NAMESPACE,
        "health": {"healthProbeBindAddress": f"127.0.0.1:{ground.ports['kueue-health']}"},
        "metrics": {"bindAddress": f"127.0.0.1:{ground.ports['kueue-metrics']}", "enableClusterQueueResources": True},
        "webhook": {"host": "127.0.0.1", "port": ground.ports["kueue-webhook"], "certDir": str(certificates)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {
            "enable": True,
            "webhookServiceName": "kueue-webhook-service",
            "webhookSecretName": WEBHOOK_SECRET,
        },
        "integrations": {"frameworks": list(INTEGRATIONS)},
        # The visibility API is served through a Service, which has no way to a process on loopback.
        "featureGates": {"VisibilityOnDemand": False},
    }
    return Part(
        name="kueue",
        version=family_named("kueue").version,
        ports=("kueue-webhook", "kueue-health", "kueue-metrics"),
        probe=f"http://127.0.0.1:{ground.ports['kueue-health']}/readyz",
        environment={"POD_NAMESPACE": NAMESPACE},
        files={
            own_kubeconfig: kubeconfig(ground, "admin"),
            settings / "configuration.yaml": yaml.safe_dump(configuration, sort_keys=False),
            certificates / "tls.crt": ground.certificates.certificate("server").read_text(),
            certificates / "tls.key": ground.certificates.key("server").read_text(),
            certificates / "ca.crt": ground.certificates.certificate("ca").read_text(),
        },
        command=[
            str(ground.tools.binary("kueue")),
            f"--config={settings / 'configuration.yaml'}",
            f"--kubeconfig={own_kubeconfig}",
            "--zap-log-level=2",
        ],
    )
