"""kube-scheduler, with its default profile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab.kubeconfig import kubeconfig
from lab.part import Part
from lab.tools.families import family_named

if TYPE_CHECKING:
    from lab.part import LabContext


def kube_scheduler(lab: LabContext) -> Part:
    """The scheduler, alone and therefore without leader election."""
    certificates = lab.certificates
    own_kubeconfig = lab.home.settings("kube-scheduler") / "kubeconfig"
    return Part(
        name="kube-scheduler",
        version=family_named("kubernetes").version,
        ports=("kube-scheduler",),
        probe=f"https://127.0.0.1:{lab.ports['kube-scheduler']}/healthz",
        files={own_kubeconfig: kubeconfig(lab, "kube-scheduler")},
        command=[
            str(lab.tools.binary("kube-scheduler")),
            f"--kubeconfig={own_kubeconfig}",
            f"--authentication-kubeconfig={own_kubeconfig}",
            f"--authorization-kubeconfig={own_kubeconfig}",
            "--bind-address=127.0.0.1",
            f"--secure-port={lab.ports['kube-scheduler']}",
            f"--tls-cert-file={certificates.certificate('server')}",
            f"--tls-private-key-file={certificates.key('server')}",
            "--leader-elect=false",
            "--v=1",
        ],
    )
