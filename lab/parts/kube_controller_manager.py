"""kube-controller-manager: Jobs, quotas, namespaces, garbage collection and the other built-in controllers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab.kubeconfig import kubeconfig
from lab.part import Part
from lab.tools.families import family_named

if TYPE_CHECKING:
    from lab.part import LabContext


def kube_controller_manager(lab: LabContext) -> Part:
    """The controller manager, alone and therefore without leader election."""
    certificates = lab.certificates
    own_kubeconfig = lab.home.settings("kube-controller-manager") / "kubeconfig"
    return Part(
        name="kube-controller-manager",
        version=family_named("kubernetes").version,
        ports=("kube-controller-manager",),
        probe=f"https://127.0.0.1:{lab.ports['kube-controller-manager']}/healthz",
        files={own_kubeconfig: kubeconfig(lab, "kube-controller-manager")},
        command=[
            str(lab.tools.binary("kube-controller-manager")),
            f"--kubeconfig={own_kubeconfig}",
            f"--authentication-kubeconfig={own_kubeconfig}",
            f"--authorization-kubeconfig={own_kubeconfig}",
            "--bind-address=127.0.0.1",
            f"--secure-port={lab.ports['kube-controller-manager']}",
            f"--tls-cert-file={certificates.certificate('server')}",
            f"--tls-private-key-file={certificates.key('server')}",
            "--leader-elect=false",
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={certificates.key('service-account')}",
            f"--root-ca-file={certificates.certificate('ca')}",
            "--kube-api-qps=300",
            "--kube-api-burst=500",
            "--v=1",
        ],
    )
