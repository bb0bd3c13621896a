"""What the members of a team may do in its namespace."""

from __future__ import annotations

from pulumi_kubernetes.rbac.v1 import PolicyRuleArgs

_READ = ("get", "list", "watch")

SUBMIT, VIEW = "submit", "view"
"""The names of the two roles."""


def view_rules() -> list[PolicyRuleArgs]:
    """To see what runs, what waits, why, and how much of the quota is left. No Secret, and nothing can be changed."""
    return [
        _rule("", ["pods", "events", "persistentvolumeclaims", "resourcequotas", "limitranges"], _READ),
        _rule("", ["pods/log"], ["get"]),
        _rule("batch", ["jobs"], _READ),
        _rule("jobset.x-k8s.io", ["jobsets"], _READ),
        _rule("kueue.x-k8s.io", ["workloads", "localqueues"], _READ),
    ]


def submit_rules() -> list[PolicyRuleArgs]:
    """To view, to start and end work, and to reach a notebook by port-forward.

    No `update` or `patch`: a Job's template is fixed anyway, and what is left to change, `suspend`, is Kueue's. No pods: work goes through
    a queue. No `exec`: who wants it gives it. A forward asks for `create` since Kubernetes 1.35 and for `get` before.
    """
    return [
        *view_rules(),
        _rule("batch", ["jobs"], ["create", "delete"]),
        _rule("jobset.x-k8s.io", ["jobsets"], ["create", "delete"]),
        _rule("", ["pods/portforward"], ["create", "get"]),
    ]


def _rule(group: str, resources: list[str], verbs: list[str] | tuple[str, ...]) -> PolicyRuleArgs:
    return PolicyRuleArgs(api_groups=[group], resources=resources, verbs=list(verbs))
