"""The platform's admission policies on the lab, and dry-run requests to an API server with these policies. Nothing is stored."""

from __future__ import annotations

import json
import re
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kubernetes.client.exceptions import ApiException
from server_questions import DEFINITION

from flexspot.capacity.catalog.node_labels import QUEUE_LABEL, TEAM_LABEL
from flexspot.capacity.plan.cpu_work import CPU_QUEUE
from flexspot.lab.cluster import Cluster, wait_until_established
from flexspot.policies.admission.guarantee import GPUS_OF_TEAMS, NAME
from flexspot.policies.inventory.pod_gpus import POD_MAKERS

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from program_declarations import Declarations

    from flexspot.lab.cluster import KubeObject
    from flexspot.policies.inventory.pod_gpus import PodMaker

CORE_GROUPS = frozenset({"", "apps", "batch"})
"""API groups of built-in kinds, which the API server validates itself."""

ELSEWHERE = "without-a-team"
"""A namespace without a team."""

_SAID = re.compile(
    r"ValidatingAdmissionPolicy '[\w-]+' with binding '[\w-]+'(?: denied request)?: (?P<rule>[a-z-]+) \(FLX\d+\): (?P<said>.*)"
)
_WARNING = re.compile(r'299 - "((?:[^"\\]|\\.)*)"')

_PASSED_OVER = re.compile(
    r'^apiserver_validating_admission_policy_check_total\{enforcement_action="allow",error_type="(?!no_error)\w+",'
    r'policy="(?P<policy>[\w-]+)",[^}]*\} (?P<count>\d+)',
    re.MULTILINE,
)

_PATIENCE_SECONDS = 30


@dataclass(frozen=True)
class Answer:
    """The server's answer to a dry-run creation: the object as it would be stored, or the error.

    `denied` and `warned` are the messages of policies by rule: of a refused object, and of an accepted one.
    """

    taken: KubeObject | None
    refusal: str
    denied: dict[str, str]
    warned: dict[str, str]


class DryRunCluster(Cluster):
    """An API server with dry-run requests, whose answers are those of real ones."""

    def ask(self, each: KubeObject) -> Answer:
        """Return the answer to creating `each`."""
        resource = self._resource(f"{each['apiVersion']}/{each['kind']}")
        try:
            response = resource.create(body=each, namespace=each["metadata"].get("namespace"), dry_run="All", serialize=False)
        except ApiException as error:
            body = str(error.body)
            message = str(json.loads(body)["message"])
            return Answer(None, message, _said([message]), {})
        header = ", ".join(text for name, text in response.getheaders().items() if name.lower() == "warning")
        return Answer(json.loads(response.data), "", {}, _said(text.replace('\\"', '"') for text in _WARNING.findall(header)))

    def metrics(self) -> str:
        """Return the API server's metrics in Prometheus' format."""
        return bytes(self._client.request("get", "/metrics", serialize=False).data).decode()


def ignored_errors(server: DryRunCluster) -> dict[str, int]:
    """Return the number of requests that each policy let pass because of its own error since the API server started.

    No other source shows it.
    """
    found: dict[str, int] = {}
    for each in _PASSED_OVER.finditer(server.metrics()):
        found[each["policy"]] = found.get(each["policy"], 0) + int(each["count"])
    return found


def _said(texts: Iterable[str]) -> dict[str, str]:
    return {match["rule"]: match["said"] for match in map(_SAID.search, texts) if match}


@contextmanager
def with_policies(cluster: Cluster, objects: list[KubeObject], namespace: str) -> Generator[DryRunCluster]:
    """Yield the API server with policies, once they apply in `namespace`, a team's. On exit, wait until they apply no more."""
    server = DryRunCluster(cluster.kubeconfig)
    try:
        cluster.apply(*objects, *_LAST)
        _wait_for_last(server, applied=True)
        _wait(server, namespace, applied=True)
        if any(each["kind"] == "MutatingAdmissionPolicy" for each in objects):
            _wait_for_owner_labels(server, namespace)
        yield server
    finally:
        for each in [*reversed(objects), *reversed(_LAST)]:
            cluster.delete(f"{each['apiVersion']}/{each['kind']}", each["metadata"]["name"], each["metadata"].get("namespace"))
        _wait_for_last(server, applied=False)
        _wait(server, namespace, applied=False)


@contextmanager
def with_policies_of(declared: Declarations, cluster: Cluster, team: str, *, guards: bool) -> Generator[DryRunCluster]:
    """Yield an API server with the policies of a program, for a namespace that counts as a team's and one without a team.

    Without `guards`, policies that protect a guarantee are left out: lint has no rules for them.
    """
    of_program = {each["metadata"]["name"]: each["metadata"] for each in declared.inputs_of("kubernetes:core/v1:Namespace")}
    read = {"annotations": of_program[team]["annotations"]} if team in of_program else {}
    names = {team: {"labels": {TEAM_LABEL: team}, **read}, ELSEWHERE: {}}
    for name, metadata in names.items():
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, **metadata}})
    every = [each.inputs for each in declared.made.values() if "admissionregistration.k8s.io" in each.type]
    kept = [each for each in every if guards or not each["metadata"]["name"].startswith((NAME, GPUS_OF_TEAMS))]
    with with_policies(cluster, kept, team) as server:
        yield server
    for name in names:
        cluster.delete("v1/Namespace", name)

    def gone(found: list[KubeObject]) -> bool:
        return not names.keys() & {each["metadata"]["name"] for each in found}

    # Other tests deploy a stack with a team of this name.
    cluster.wait_for("v1/Namespace", gone, "the end of the namespaces")


@contextmanager
def kinds_of_frameworks(cluster: Cluster) -> Generator[None]:
    """Create definitions of every kind with a pod template that a server does not have by itself. Each kind accepts every field."""
    kinds = {f"{each.resource}.{each.group}": each for each in POD_MAKERS.values() if each.group not in CORE_GROUPS}
    cluster.apply(*map(_definition, kinds.values()))
    wait_until_established(cluster, kinds)
    yield
    for name in kinds:
        cluster.delete(DEFINITION, name)

    def gone(found: list[KubeObject]) -> bool:
        return not kinds.keys() & {each["metadata"]["name"] for each in found}

    # Other tests list all kinds of the server.
    cluster.wait_for(DEFINITION, gone, "the end of the definitions")


def wait_for_kinds(server: DryRunCluster, namespace: str) -> None:
    """Return once the server's policies that change objects know the kinds of `kinds_of_frameworks`.

    The API server looks for new kinds once a minute.
    """
    makers = [each for each in POD_MAKERS.values() if each.group not in CORE_GROUPS]
    asked = [{"apiVersion": f"{each.group}/v1", "kind": each.kind, "metadata": {"name": "any", "namespace": namespace}} for each in makers]
    wait_until(lambda: not any("There can be a delay" in server.ask(each).refusal for each in asked), "a kind is unknown", 120)


def _definition(maker: PodMaker) -> KubeObject:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{maker.resource}.{maker.group}"},
        "spec": {
            "group": maker.group,
            "names": {"plural": maker.resource, "kind": maker.kind},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


_LAST_NAME = "lab-last"
_LAST: tuple[KubeObject, ...] = (
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": _LAST_NAME},
        "spec": {
            "matchConstraints": {
                "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
            },
            "validations": [{"expression": f"object.metadata.name != '{_LAST_NAME}'", "message": "the last policy is applied"}],
        },
    },
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": _LAST_NAME},
        "spec": {"policyName": _LAST_NAME, "validationActions": ["Deny"]},
    },
)
"""A policy and a binding of the tests.

The API server learns of policies, and of bindings, in the order of their creation: once it applies the last of both, it applies all.
"""


def _wait_for_last(server: DryRunCluster, *, applied: bool) -> None:
    refused: KubeObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": _LAST_NAME, "namespace": "default"}}
    wait_until(
        lambda: (_LAST_NAME in server.ask(refused).refusal) == applied, f"the last policy is {'not applied' if applied else 'applied'}"
    )


def _wait(server: DryRunCluster, namespace: str, *, applied: bool) -> None:
    """Wait for the labels of namespaces, by which bindings select them. They arrive by a separate watch, and no status shows when."""

    def everywhere() -> bool:
        refused, warned = server.ask(_wrong(namespace)), server.ask(_wrong("default"))
        return {bool(refused.denied), bool(warned.warned)} == {applied}

    wait_until(everywhere, f"the policies are {'not applied' if applied else 'applied'}")


def _wait_for_owner_labels(server: DryRunCluster, namespace: str) -> None:
    def labelled() -> bool:
        taken = server.ask(_unowned(namespace)).taken
        return taken is not None and TEAM_LABEL in taken["metadata"].get("labels", {})

    wait_until(labelled, "work gets no owner labels")


def wait_until(seen: Callable[[], object], otherwise: str, patience_seconds: int = _PATIENCE_SECONDS) -> None:
    """Return once `seen` is true. Raises AssertionError with the text `otherwise`."""
    deadline = time.monotonic() + patience_seconds
    while not seen():
        assert time.monotonic() < deadline, f"{otherwise} after {patience_seconds} seconds"


def _unowned(namespace: str) -> KubeObject:
    safe = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    pod = {
        "restartPolicy": "Never",
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{"name": "work", "image": "work:1", "securityContext": safe}],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "unowned", "namespace": namespace, "labels": {QUEUE_LABEL: CPU_QUEUE}},
        "spec": {"suspend": True, "template": {"spec": pod}},
    }


def _wrong(namespace: str) -> KubeObject:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "wrong", "namespace": namespace},
        "spec": {"hard": {"limits.nvidia.com/gpu": "1"}},
    }
