"""Kueue: queues, quotas and preemption, with its webhooks on, configured as on a cloud."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from capacity.plan.kueue_configuration import NAMESPACE, ONE_BOOT, kueue_configuration
from lab.part import Part, kubeconfig
from lab.tools.build import family_named

if TYPE_CHECKING:
    from pathlib import Path

    from lab.part import LabContext

WEBHOOK_SECRET = "kueue-webhook-server-cert"  # noqa: S105 -- the name of a Secret, not its content


def lab_configuration(lab: LabContext) -> dict[str, Any]:
    """What a cloud's Kueue is configured by, with the lab's addresses and certificates; what it decides by is the same.

    Its internal certificate management stays on, over a Secret that already holds the lab's authority (see lab.cluster):
    without it, Kueue 0.19 wants a metrics certificate under /etc, which would need root.
    """
    released = kueue_configuration(ONE_BOOT)
    return released | {
        "health": {"healthProbeBindAddress": f"127.0.0.1:{lab.ports['kueue-health']}"},
        "metrics": released["metrics"] | {"bindAddress": f"127.0.0.1:{lab.ports['kueue-metrics']}"},
        "webhook": {"host": "127.0.0.1", "port": lab.ports["kueue-webhook"], "certDir": str(_certificates(lab))},
        # One process, which a restart follows at once.
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {
            "enable": True,
            "webhookServiceName": "kueue-webhook-service",
            "webhookSecretName": WEBHOOK_SECRET,
        },
        # The visibility API is served through a Service, which has no way to a process on loopback.
        "featureGates": {"VisibilityOnDemand": False},
    }


def kueue(lab: LabContext) -> Part:
    """Kueue outside a cluster."""
    settings, certificates = lab.home.settings("kueue"), _certificates(lab)
    own_kubeconfig = settings / "kubeconfig"
    return Part(
        name="kueue",
        version=family_named("kueue").version,
        ports=("kueue-webhook", "kueue-health", "kueue-metrics"),
        probe=f"http://127.0.0.1:{lab.ports['kueue-health']}/readyz",
        environment={"POD_NAMESPACE": NAMESPACE},
        files={
            own_kubeconfig: kubeconfig(lab, "admin"),
            settings / "configuration.yaml": yaml.safe_dump(lab_configuration(lab), sort_keys=False),
            certificates / "tls.crt": lab.certificates.certificate("server").read_text(),
            certificates / "tls.key": lab.certificates.key("server").read_text(),
            certificates / "ca.crt": lab.certificates.certificate("ca").read_text(),
        },
        command=[
            str(lab.tools.binary("kueue")),
            f"--config={settings / 'configuration.yaml'}",
            f"--kubeconfig={own_kubeconfig}",
            "--zap-log-level=2",
        ],
    )


def _certificates(lab: LabContext) -> Path:
    return lab.home.settings("kueue") / "certificates"
