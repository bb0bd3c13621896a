"""Who may stop a notebook and who may start it: each has the right to that one object and no other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from capacity.workloads.names import SERVICE_ACCOUNT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from capacity.workloads.place import Place
    from capacity.workloads.pods import KubeObject

_RBAC = "rbac.authorization.k8s.io"


def roles(place: Place, name: str, labels: Mapping[str, str]) -> tuple[KubeObject, ...]:
    """A role and its binding for each who needs a right.

    The watch of a Deployment may scale it, as the service account of the team's workloads, whose token it alone has in its pod. A session's
    watch needs nothing of Kubernetes. Who may submit in the namespace may make Jobs already, and may here read the pattern of a session, or
    scale the Deployment.
    """
    may_start = [{"apiGroup": _RBAC, "kind": "Group", "name": group} for group in place.team.submitters]
    if place.queue is not None:
        start = [_rule("batch", "cronjobs", name, "get")]
        return _role(place, f"{name}-start", labels, start, may_start)
    account = {"kind": "ServiceAccount", "name": SERVICE_ACCOUNT, "namespace": place.namespace}
    start = [_rule("apps", "deployments", name, "get"), _rule("apps", "deployments/scale", name, "get", "patch", "update")]
    return (
        *_role(place, f"{name}-stop", labels, [_rule("apps", "deployments/scale", name, "patch")], [account]),
        *_role(place, f"{name}-start", labels, start, may_start),
    )


def _role(
    place: Place, name: str, labels: Mapping[str, str], rules: Sequence[KubeObject], subjects: Sequence[KubeObject]
) -> tuple[KubeObject, ...]:
    if not subjects:
        return ()
    version = f"{_RBAC}/v1"
    metadata: dict[str, Any] = {"name": name, "namespace": place.namespace, "labels": dict(labels)}
    reference = {"apiGroup": _RBAC, "kind": "Role", "name": name}
    return (
        {"apiVersion": version, "kind": "Role", "metadata": metadata, "rules": list(rules)},
        {"apiVersion": version, "kind": "RoleBinding", "metadata": metadata, "roleRef": reference, "subjects": list(subjects)},
    )


def _rule(group: str, resource: str, name: str, *verbs: str) -> KubeObject:
    return {"apiGroups": [group], "resources": [resource], "resourceNames": [name], "verbs": list(verbs)}
