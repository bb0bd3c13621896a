"""A team's namespace on the lab as the component Team makes it, pods to try it with, and people who are no administrators."""

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

# No node has it: what is tried here is what the API server takes, and nothing should be launched for it.
_NOWHERE = {"flexspot.dev/no-such-node": "true"}


class Member(Cluster):
    """The API server as a person in a group sees it."""

    def __init__(self, kubeconfig: Path, group: str, user: str = "somebody@acme.com") -> None:
        super().__init__(kubeconfig)
        self._client.client.set_default_header("Impersonate-User", user)
        # The client sends one header of a name: a person of these tests is in one group, and everybody is in system:authenticated.
        if group:
            self._client.client.set_default_header("Impersonate-Group", group)

    @classmethod
    def account(cls, kubeconfig: Path, namespace: str, name: str) -> Member:
        """The API server as a pod sees it under a service account; without a group named, it has those of its account."""
        return cls(kubeconfig, "", f"system:serviceaccount:{namespace}:{name}")


def rules_of(cluster: Cluster, namespace: str) -> tuple[set[str], set[str]]:
    """What an identity may do in a namespace: `GROUP/RESOURCE VERB`, and the paths outside of the API that it may read."""
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
    """A pod that `restricted` lets through, with GPUs where it asks for any; `spec` changes its spec."""
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
    """The pod with fields of its container changed."""
    each["spec"]["containers"][0] |= fields
    return each


def job(namespace: str) -> KubeObject:
    """A Job that `restricted` lets through and that makes no pods yet."""
    template = pod(namespace)["spec"] | {"restartPolicy": "Never"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"job-{uuid.uuid4().hex[:8]}", "namespace": namespace},
        "spec": {"suspend": True, "template": {"spec": template}},
    }


def refusal(cluster: Cluster, each: KubeObject) -> str:
    """What the API server says when it refuses to create `each`; "" when it takes it."""
    try:
        cluster.create(each)
    except ApiException as error:
        return str(error.body)
    return ""


@contextmanager
def team_on(cluster: Cluster, register: Register, classes: list[PriorityArgs], **changes: Any) -> Generator[str]:
    """The namespace of a team that may hold two GPUs, made of what Team registers; gone afterwards."""
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

        # Until it was counted once, everything is refused because nobody knows how much is left.
        cluster.wait_for(QUOTA, counted, f"counting of the quotas of {namespace}", namespace=namespace)
        # Kubernetes makes it in each namespace; until then, pods that name no other are refused.
        cluster.wait_for("v1/ServiceAccount", has_default, f"the service account default of {namespace}", namespace=namespace)
        yield namespace
    finally:
        for each in objects:
            if "namespace" not in each["metadata"]:
                cluster.delete(f"{each['apiVersion']}/{each['kind']}", each["metadata"]["name"])


def has_default(accounts: list[KubeObject]) -> bool:
    """Whether the service account that Kubernetes makes by itself is among them."""
    return "default" in {each["metadata"]["name"] for each in accounts}


def objects_of(register: Register, arguments: Mapping[str, Any], classes: list[PriorityArgs], labels: dict[str, str]) -> list[KubeObject]:
    """What the components register, the namespace and the priorities before what needs them."""
    team: TeamArgs = {**arguments}  # pyrefly: ignore[bad-unpacking] -- of the form that the component checks

    def declare() -> None:
        Priorities("priorities", {"classes": classes, "labels": labels})
        Team("team", team)

    found = [inputs for token, _, inputs in register(declare).resources if token.startswith("kubernetes:")]
    return sorted(found, key=lambda each: each["kind"] not in {"Namespace", "PriorityClass"})
