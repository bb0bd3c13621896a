"""Kubernetes itself: etcd, kube-apiserver, kube-controller-manager and kube-scheduler, as a cluster has them by default."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab.part import Part, kubeconfig
from lab.tools.build import family_named

if TYPE_CHECKING:
    from lab.part import LabContext


def etcd(lab: LabContext) -> Part:
    """A single member with TLS on both ports. Without fsync: a lab's state survives a killed process, not a power cut."""
    certificates = lab.certificates
    client = f"https://127.0.0.1:{lab.ports['etcd']}"
    peer = f"https://127.0.0.1:{lab.ports['etcd-peer']}"
    return Part(
        name="etcd",
        version=family_named("etcd").version,
        ports=("etcd", "etcd-peer"),
        probe=f"{client}/health",
        command=[
            str(lab.tools.binary("etcd")),
            "--name=lab",
            f"--data-dir={lab.home.data('etcd') / 'member'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=lab={peer}",
            f"--cert-file={certificates.certificate('server')}",
            f"--key-file={certificates.key('server')}",
            f"--trusted-ca-file={certificates.certificate('ca')}",
            "--client-cert-auth",
            f"--peer-cert-file={certificates.certificate('server')}",
            f"--peer-key-file={certificates.key('server')}",
            f"--peer-trusted-ca-file={certificates.certificate('ca')}",
            "--peer-client-cert-auth",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ],
    )


def kube_apiserver(lab: LabContext) -> Part:
    """The API server, on loopback alone."""
    certificates = lab.certificates
    return Part(
        name="kube-apiserver",
        version=family_named("kubernetes").version,
        ports=("kube-apiserver",),
        probe=f"{lab.api_url}/readyz",
        # A lab's heap is small: collected less often, the API server takes a sixth less CPU, for some more memory.
        environment={"GOGC": "400"},
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
