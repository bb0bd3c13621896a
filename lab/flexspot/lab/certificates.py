"""The lab's certificate authority and the certificates with which its parts authenticate to each other."""

from __future__ import annotations

import datetime as dt
import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from pathlib import Path

PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

_LIFETIME = dt.timedelta(days=3650)

IDENTITIES = {
    # The groups and users that Kubernetes' default RBAC policy knows. Kueue acts as its service account. Karpenter and KWOK run as
    # administrators: Karpenter's roles are in a chart's templates, and KWOK stands for nodes.
    "admin": ("flexspot-admin", "system:masters"),
    "apiserver-etcd-client": ("kube-apiserver", "etcd-clients"),
    "kube-controller-manager": ("system:kube-controller-manager", None),
    "kube-scheduler": ("system:kube-scheduler", None),
}
"""Client certificates: file name to (user, group)."""

_SERVER_NAMES = [
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    # Kueue's certificate rotation keeps a certificate only if it is for the name of Kueue's webhook service.
    "kueue-webhook-service.kueue-system.svc",
]
_SERVER_ADDRESSES = ["127.0.0.1", "10.96.0.1"]


@dataclass(frozen=True)
class Certificates:
    """PEM files in one folder: NAME.crt and NAME.key for the authority, the server and each identity, and service-account.key and .pub."""

    folder: Path

    def certificate(self, name: str) -> Path:
        """Return the path of the certificate of `ca`, `server` or an identity."""
        return self.folder / f"{name}.crt"

    def key(self, name: str) -> Path:
        """Return the path of the private key of `ca`, `server`, `service-account` or an identity."""
        return self.folder / f"{name}.key"

    @property
    def service_account_public_key(self) -> Path:
        """Path of the key with which the API server verifies service account tokens."""
        return self.folder / "service-account.pub"


def ensure_certificates(folder: Path) -> Certificates:
    """Return the lab's certificates. Create them if they are missing or if creating them was interrupted. They are valid for ten years."""
    certificates = Certificates(folder)
    # Written last, so it exists only if all the others do.
    if not certificates.service_account_public_key.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _write_all(certificates)
    return certificates


def _write_all(certificates: Certificates) -> None:
    # Kueue's certificate rotation keeps this authority only if the key is RSA and the certificate is for the name kueue-ca
    # (open-policy-agent/cert-controller v0.16.0, buildArtifactsFromSecret and validCACert).
    authority_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    authority_name = _subject("flexspot-lab", None)
    authority = _builder(authority_name, authority_name, authority_key, signs=True)
    authority = authority.add_extension(x509.SubjectAlternativeName([x509.DNSName("kueue-ca")]), critical=False)
    authority = authority.add_extension(x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False)
    authority_certificate = authority.sign(authority_key, hashes.SHA256())
    _write_pair(certificates, "ca", authority_certificate, authority_key)

    for name, (user, group) in {"server": ("flexspot-lab", None), **IDENTITIES}.items():
        key = ec.generate_private_key(ec.SECP256R1())
        leaf = _builder(_subject(user, group), authority_name, key, signs=False)
        # etcd's server presents its certificate as a client to itself, so it needs both usages.
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH] + [ExtendedKeyUsageOID.SERVER_AUTH] * (name == "server")
        leaf = leaf.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        if name == "server":
            names: list[x509.GeneralName] = [x509.DNSName(dns) for dns in _SERVER_NAMES]
            names += [x509.IPAddress(ipaddress.ip_address(address)) for address in _SERVER_ADDRESSES]
            leaf = leaf.add_extension(x509.SubjectAlternativeName(names), critical=False)
        _write_pair(certificates, name, leaf.sign(authority_key, hashes.SHA256()), key)

    signer = ec.generate_private_key(ec.SECP256R1())
    _write_private(certificates.key("service-account"), _private_pem(signer))
    certificates.service_account_public_key.write_bytes(
        signer.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )


def _subject(user: str, group: str | None) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, user)]
    if group is not None:
        attributes.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
    return x509.Name(attributes)


_USAGES = {
    "digital_signature": True,
    **dict.fromkeys(("content_commitment", "data_encipherment", "key_agreement", "encipher_only", "decipher_only"), False),
}


def _builder(subject: x509.Name, issuer: x509.Name, key: PrivateKey, *, signs: bool) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.BasicConstraints(ca=signs, path_length=None), critical=True)
        .add_extension(x509.KeyUsage(**_USAGES, key_encipherment=not signs, key_cert_sign=signs, crl_sign=signs), critical=True)
    )


def _write_pair(certificates: Certificates, name: str, certificate: x509.Certificate, key: PrivateKey) -> None:
    certificates.certificate(name).write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    _write_private(certificates.key(name), _private_pem(key))


def _private_pem(key: PrivateKey) -> bytes:
    # The traditional format, PKCS #1 for RSA: the only one that Kueue's certificate rotation reads.
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption())


def _write_private(path: Path, content: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content)
