"""kube-apiserver, with RBAC and the admission plugins that a cluster has by default."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab.part import Part
from lab.tools.families import family_named

if TYPE_CHECKING:
    from lab.part import LabContext


def kube_apiserver(lab: LabContext) -> Part:
    """The API server, on loopback alone."""
    certificates = lab.certificates
    return Part(
        name="kube-apiserver",
        version=family_named("kubernetes").version,
        ports=("kube-apiserver",),
        probe=f"{lab.api_url}/readyz",
        command=[
            str(lab.tools.binary("kube-apiserver")),
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={lab.ports['kube-apiserver']}",
            # Endpoints of the `kubernetes` service may not be on loopback, and nothing in the lab uses them.
            "--endpoint-reconciler-type=none",
            "--service-cluster-ip-range=10.96.0.0/16",
            f"--tls-cert-file={certificates.certificate('server')}",
            f"--tls-private-key-file={certificates.key('server')}",
            f"--client-ca-file={certificates.certificate('ca')}",
            # Nobody holds a certificate of this name; without the setting, the other parts complain once a minute.
            f"--requestheader-client-ca-file={certificates.certificate('ca')}",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            "--authorization-mode=Node,RBAC",
            f"--etcd-servers=https://127.0.0.1:{lab.ports['etcd']}",
            f"--etcd-cafile={certificates.certificate('ca')}",
            f"--etcd-certfile={certificates.certificate('apiserver-etcd-client')}",
            f"--etcd-keyfile={certificates.key('apiserver-etcd-client')}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={certificates.service_account_public_key}",
            f"--service-account-signing-key-file={certificates.key('service-account')}",
            "--v=1",
        ],
    )
