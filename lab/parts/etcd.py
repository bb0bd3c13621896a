"""etcd: the API server's store, a single member."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab.part import Part
from lab.tools.families import family_named

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
