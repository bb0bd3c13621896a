"""A kubeconfig without secrets: whoever uses it gets a token from the cloud's own command."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def kubeconfig_of(context: str, server: str, certificate: str | None, command: Mapping[str, Any]) -> str:
    """A kubeconfig as JSON, which is YAML, too.

    `context` names cluster, user and context alike. `server` begins with https://. `certificate` is base64, or None where the server has
    one of a public authority. `command` is what makes tokens: the fields of kubectl's `exec` besides its version.
    """
    authority = {} if certificate is None else {"certificate-authority-data": certificate}
    written = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": context,
        "clusters": [{"name": context, "cluster": {"server": server, **authority}}],
        "contexts": [{"name": context, "context": {"cluster": context, "user": context}}],
        "users": [{"name": context, "user": {"exec": {"apiVersion": "client.authentication.k8s.io/v1beta1", **command}}}],
    }
    return json.dumps(written, indent=2)
