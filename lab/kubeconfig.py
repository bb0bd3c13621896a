"""Kubeconfig files: how a program or a person reaches the lab's API server."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from pathlib import Path

    from lab.part import LabContext


def kubeconfig(lab: LabContext, identity: str) -> str:
    """A kubeconfig for one of lab.certificates.IDENTITIES, whole in itself so that it can be copied elsewhere."""
    context = f"flexspot-{lab.home.name}"
    certificates = lab.certificates

    def inline(path: Path) -> str:
        return base64.b64encode(path.read_bytes()).decode()

    cluster = {"server": lab.api_url, "certificate-authority-data": inline(certificates.certificate("ca"))}
    user = {
        "client-certificate-data": inline(certificates.certificate(identity)),
        "client-key-data": inline(certificates.key(identity)),
    }
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": context, "cluster": cluster}],
        "users": [{"name": identity, "user": user}],
        "contexts": [{"name": context, "context": {"cluster": context, "user": identity}}],
        "current-context": context,
    }
    return yaml.safe_dump(content, sort_keys=False)
