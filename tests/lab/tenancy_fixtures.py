"""A team's namespace on the lab as the component Team creates it, pods to test it, and users who are not administrators."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from itertools import product
from typing import TYPE_CHECKING, Any

from kubernetes.client.exceptions import ApiException

from flexspot.components.tenancy.priorities import Priorities
from flexspot.components.tenancy.team import Team
from flexspot.lab.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from flexspot.components.tenancy.priorities import PriorityArgs
    from flexspot.components.tenancy.team import TeamArgs
    from flexspot.lab.cluster import KubeObject

Register = Callable[[Callable[[], object]], Any]

QUOTA = "v1/ResourceQuota"

SAFE_POD: dict[str, Any] = {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}}
SAFE_CONTAINER: dict[str, Any] = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}

# No node has it: tests check what the API server accepts, and nothing should be launched for it.
_NOWHERE = {"flexspot.dev/no-such-node": "true"}


class Member(Cluster):
    """The API server as a user in a group sees it."""

    def __init__(self, kubeconfig: Path, group: str, user: str = "somebody@acme.com") -> None:
        super().__init__(kubeconfig)
        self._client.client.set_default_header("Impersonate-User", user)
        # The client sends one header per name. A user of these tests is in one group, and every user is in system:authenticated.
        if group:
            self._client.client.set_default_header("Impersonate-Group", group)

    @classmethod
    def account(cls, kubeconfig: Path, namespace: str, name: str) -> Member:
        """Return the API server as a pod sees it under a service account. Without a named group, it has those of its account."""
        return cls(kubeconfig, "", f"system:serviceaccount:{namespace}:{name}")


def rules_of(cluster: Cluster, namespace: str) -> tuple[set[str], set[str]]:
    """Return the rights of an identity in a namespace: `GROUP/RESOURCE VERB`, and the non-resource paths that it may read."""
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "metadata": {}, "spec": {"namespace": namespace}}
    status = cluster.create(review)["status"]
    resources = {
        f"{group}/{resource} {verb}"
        for rule in status["resourceRules"]
        for group, resource, verb in product(rule.get("apiGroups") or [""], rule.get("resources") or [""], rule["verbs"])
    }
    outside: list[dict[str, list[str]]] = status.get("nonResourceRules") or []
    return resources, {path for rule in outside for path in rule.get("nonResourceURLs") or []}


def pod(namespace: str, *, gpus: int = 0, priority: str = "", **spec: Any) -> KubeObject:
    """Return a pod that `restricted` accepts, with GPUs if requested. `spec` changes its spec."""
    container: dict[str, Any] = {"name": "main", "image": "busybox:1.37", "securityContext": SAFE_CONTAINER}
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{uuid.uuid4().hex[:8]}", "namespace": namespace},
        "spec": {
            "securityContext": SAFE_POD,
            "nodeSelector": _NOWHERE,
            "containers": [container],
            **({"priorityClassName": priority} if priority else {}),
            **spec,
        },
    }


def with_container(each: KubeObject, **fields: Any) -> KubeObject:
    """Return the pod with changed fields of its container."""
    each["spec"]["containers"][0] |= fields
    return each


def job(namespace: str) -> KubeObject:
    """Return a Job that `restricted` accepts and that creates no pods yet."""
    template = pod(namespace)["spec"] | {"restartPolicy": "Never"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"job-{uuid.uuid4().hex[:8]}", "namespace": namespace},
        "spec": {"suspend": True, "template": {"spec": template}},
    }


def refusal(cluster: Cluster, each: KubeObject) -> str:
    """Return the API server's message when it refuses to create `each`, "" if it accepts it."""
    try:
        cluster.create(each)
    except ApiException as error:
        return str(error.body)
    return ""


@contextmanager
def team_on(cluster: Cluster, register: Register, classes: list[PriorityArgs], **changes: Any) -> Generator[str]:
    """Yield the namespace of a team that may have two GPUs, created from Team's objects. It is deleted afterwards."""
    namespace = f"team-{uuid.uuid4().hex[:8]}"
    labels = {"flexspot.dev/team": namespace, "flexspot.dev/owner": "ann"}
    arguments: dict[str, Any] = {
        "namespace": namespace,
        "labels": labels,
        "hard": {
            "requests.nvidia.com/gpu": "2",
            "pods": "5",
            "count/jobs.batch": "1",
            "persistentvolumeclaims": "2",
            "requests.storage": "1Ti",
        },
        "container_limits": {"cpu": "4", "memory": "16Gi"},
        **changes,
    }
    objects = objects_of(register, arguments, classes, labels)
    try:
        cluster.apply(*objects)
        quotas = {each["metadata"]["name"] for each in objects if each["kind"] == "ResourceQuota"}

        def counted(found: list[KubeObject]) -> bool:
            return quotas == {each["metadata"]["name"] for each in found if each["status"].get("used")}

        # Until the quota was counted once, everything is refused because the remaining amount is unknown.
        cluster.wait_for(QUOTA, counted, f"counting of the quotas of {namespace}", namespace=namespace)
        # Kubernetes creates it in each namespace. Until then, pods that name no other account are refused.
        cluster.wait_for("v1/ServiceAccount", has_default, f"the service account default of {namespace}", namespace=namespace)
        yield namespace
    finally:
        for each in objects:
            if "namespace" not in each["metadata"]:
                cluster.delete(f"{each['apiVersion']}/{each['kind']}", each["metadata"]["name"])


def has_default(accounts: list[KubeObject]) -> bool:
    """Return whether the service account that Kubernetes creates by itself is among them."""
    return "default" in {each["metadata"]["name"] for each in accounts}


def objects_of(register: Register, arguments: Mapping[str, Any], classes: list[PriorityArgs], labels: dict[str, str]) -> list[KubeObject]:
    """Return the objects that the components register, with the namespace and the priorities before those that need them."""
    team: TeamArgs = {**arguments}  # pyrefly: ignore[bad-unpacking] -- of the form that the component checks

    def declare() -> None:
        Priorities("priorities", {"classes": classes, "labels": labels})
        Team("team", team)

    found = [inputs for token, _, inputs in register(declare).resources if token.startswith("kubernetes:")]
    return sorted(found, key=lambda each: each["kind"] not in {"Namespace", "PriorityClass"})
