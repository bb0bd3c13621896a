"""Work whose pods the namespace would refuse is refused itself: the CEL rule compared with Kubernetes' own Pod Security, pod by pod."""

from __future__ import annotations

import random
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from admission_fixtures import with_policies_of
from program_declarations import as_shipped

from flexspot.components.tenancy.team import restricted
from flexspot.policies.admission.guarantee import NAME

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexspot.lab.cluster import Cluster, KubeObject

pytestmark = [
    pytest.mark.lab,
    pytest.mark.nightly(
        tested_by="test_no_submission_of_a_member_keeps_another_team_from_its_share, "
        "test_a_pod_with_privileges_is_refused_with_the_rule_that_it_breaks"
    ),
]

TEAM = "team-alpha"
"""A team of the local stack, which the policies know."""

Pod = dict[str, Any]


def safe() -> Pod:
    container = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    containers = [{"name": name, "image": "busybox:1.37", "securityContext": dict(container)} for name in ("main", "side")]
    profile = {"seccompProfile": {"type": "RuntimeDefault"}, "runAsNonRoot": True, "runAsUser": 1000}
    return {"restartPolicy": "Never", "securityContext": profile, "containers": containers}


def of_pod(**fields: Any) -> Callable[[Pod], object]:
    return lambda pod: pod.update(fields)


def of_context(**fields: Any) -> Callable[[Pod], object]:
    return lambda pod: pod["securityContext"].update(fields)


def of_container(**fields: Any) -> Callable[[Pod], object]:
    return lambda pod: pod["containers"][1].update(fields)


def of_its_context(**fields: Any) -> Callable[[Pod], object]:
    return lambda pod: pod["containers"][1]["securityContext"].update(fields)


def preparing(context: Any) -> Callable[[Pod], object]:
    return lambda pod: pod.update(initContainers=[{"name": "first", "image": "busybox:1.37", "securityContext": context}])


def volume(**source: Any) -> Callable[[Pod], object]:
    return lambda pod: pod.setdefault("volumes", []).append({"name": f"v{len(pod.get('volumes', []))}", **source})


def port(**fields: Any) -> Callable[[Pod], object]:
    return of_container(ports=[{"containerPort": 80, **fields}])


CLAIM = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
EDITS: dict[str, Callable[[Pod], object]] = {
    "nothing": lambda _: None,
    "hostNetwork": of_pod(hostNetwork=True),
    "no hostNetwork": of_pod(hostNetwork=False),
    "hostPID": of_pod(hostPID=True),
    "hostIPC": of_pod(hostIPC=True),
    "host users": of_pod(hostUsers=True),
    "hostPath": volume(hostPath={"path": "/"}),
    "nfs": volume(nfs={"server": "10.0.0.1", "path": "/"}),
    "iscsi": volume(iscsi={"targetPortal": "10.0.0.1", "iqn": "iqn.2001-04.com.example:storage", "lun": 0}),
    "emptyDir": volume(emptyDir={}),
    "memory": volume(emptyDir={"medium": "Memory"}),
    "no source": volume(),
    "configMap": volume(configMap={"name": "x"}),
    "secret": volume(secret={"secretName": "x"}),
    "projected": volume(projected={"sources": [{"configMap": {"name": "x"}}]}),
    "downwardAPI": volume(downwardAPI={"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}),
    "claim": volume(persistentVolumeClaim={"claimName": "x"}),
    "ephemeral": volume(ephemeral={"volumeClaimTemplate": CLAIM}),
    "csi": volume(csi={"driver": "gcsfuse.csi.storage.gke.io"}),
    "image volume": volume(image={"reference": "models:1"}),
    "hostPort": port(hostPort=8080),
    "hostPort 0": port(hostPort=0),
    "port": port(),
    "probe of a host": of_container(livenessProbe={"httpGet": {"port": 80, "host": "10.0.0.1"}}),
    "probe of itself": of_container(readinessProbe={"httpGet": {"port": 80}}),
    "TCP probe of a host": of_container(startupProbe={"tcpSocket": {"port": 80, "host": "10.0.0.1"}}),
    "hook of a host": of_container(lifecycle={"preStop": {"httpGet": {"port": 80, "host": "10.0.0.1"}}}),
    "hook": of_container(lifecycle={"postStart": {"exec": {"command": ["true"]}}}),
    "pod as root": of_context(runAsUser=0),
    "container as root": of_its_context(runAsUser=0),
    "perhaps root": lambda pod: pod["securityContext"].pop("runAsNonRoot"),
    "container perhaps root": of_its_context(runAsNonRoot=False),
    "pod perhaps root, containers not": lambda pod: (
        pod["securityContext"].pop("runAsNonRoot"),
        [each["securityContext"].update(runAsNonRoot=True) for each in pod["containers"]],
    ),
    "pod says root, containers not": lambda pod: (
        pod["securityContext"].update(runAsNonRoot=False),
        [each["securityContext"].update(runAsNonRoot=True) for each in pod["containers"]],
    ),
    "no seccomp": lambda pod: pod["securityContext"].pop("seccompProfile"),
    "seccomp of containers alone": lambda pod: (
        pod["securityContext"].pop("seccompProfile"),
        [each["securityContext"].update(seccompProfile={"type": "RuntimeDefault"}) for each in pod["containers"]],
    ),
    "seccomp of one container alone": lambda pod: (
        pod["securityContext"].pop("seccompProfile"),
        pod["containers"][0]["securityContext"].update(seccompProfile={"type": "RuntimeDefault"}),
    ),
    "seccomp of a file": of_context(seccompProfile={"type": "Localhost", "localhostProfile": "x.json"}),
    "seccomp unconfined": of_context(seccompProfile={"type": "Unconfined"}),
    "container unconfined": of_its_context(seccompProfile={"type": "Unconfined"}),
    "AppArmor unconfined": of_context(appArmorProfile={"type": "Unconfined"}),
    "AppArmor of a container unconfined": of_its_context(appArmorProfile={"type": "Unconfined"}),
    "AppArmor": of_context(appArmorProfile={"type": "RuntimeDefault"}),
    "SELinux": of_context(seLinuxOptions={"type": "container_t"}),
    "SELinux of the engine": of_context(seLinuxOptions={"type": "container_engine_t"}),
    "SELinux of one's own": of_its_context(seLinuxOptions={"type": "spc_t"}),
    "SELinux level": of_context(seLinuxOptions={"level": "s0:c1,c2"}),
    "SELinux user": of_context(seLinuxOptions={"user": "root"}),
    "SELinux role": of_context(seLinuxOptions={"role": "sysadm"}),
    "safe sysctl": of_context(sysctls=[{"name": "net.ipv4.tcp_syncookies", "value": "1"}]),
    "newer safe sysctl": of_context(sysctls=[{"name": "net.ipv4.tcp_rmem", "value": "4096 87380 6291456"}]),
    "sysctl": of_context(sysctls=[{"name": "kernel.msgmax", "value": "1"}]),
    "no capabilities said": lambda pod: pod["containers"][0]["securityContext"].pop("capabilities"),
    "some capabilities dropped": of_its_context(capabilities={"drop": ["KILL"]}),
    "capability to bind": of_its_context(capabilities={"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}),
    "capability": of_its_context(capabilities={"drop": ["ALL"], "add": ["NET_RAW"]}),
    "all in small letters": of_its_context(capabilities={"drop": ["all"]}),
    "escalation": of_its_context(allowPrivilegeEscalation=True),
    "escalation not said": lambda pod: pod["containers"][1]["securityContext"].pop("allowPrivilegeEscalation"),
    "no context": lambda pod: pod["containers"][1].pop("securityContext"),
    "procMount": of_its_context(procMount="Default"),
    "unmasked": lambda pod: (pod.update(hostUsers=False), pod["containers"][1]["securityContext"].update(procMount="Unmasked")),
    "safe container first": preparing({"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}),
    "container first": preparing({}),
    "root first": preparing({"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "runAsUser": 0}),
    "group root": of_context(fsGroup=0, supplementalGroups=[0]),
    "read only": of_its_context(readOnlyRootFilesystem=True),
}


def edited(*edits: str) -> Pod | None:
    """Return a safe pod with edits, or None if one removes what another needs."""
    pod = safe()
    try:
        for each in edits:
            EDITS[each](pod)
    except KeyError:
        return None
    return pod


def pods() -> list[tuple[str, Pod]]:
    """Return a pod with each edit, and 150 with three."""
    chosen = random.Random(16)  # noqa: S311 -- nothing secret
    many = [tuple(chosen.sample(sorted(EDITS), 3)) for _ in range(150)]
    return [(" and ".join(edits), pod) for edits in [*((each,) for each in EDITS), *many] if (pod := edited(*edits)) is not None]


def named(kind: str, namespace: str, spec: KubeObject) -> KubeObject:
    api = "batch/v1" if kind == "Job" else "v1"
    # In the namespace for work without GPUs: elsewhere it is refused for another reason.
    queue = {"labels": {"kueue.x-k8s.io/queue-name": "cpu"}} if kind == "Job" else {}
    return {
        "apiVersion": api,
        "kind": kind,
        "metadata": {"name": f"x-{uuid.uuid4().hex[:8]}", "namespace": namespace, **queue},
        "spec": spec,
    }


def test_a_job_is_refused_for_exactly_the_pods_that_the_namespace_would_refuse(cluster: Cluster) -> None:
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "restricted-alone", "labels": restricted()}})
    cluster.wait_for("v1/ServiceAccount", bool, "the default service account", namespace="restricted-alone")

    different: dict[str, str] = {}
    refused = 0
    with with_policies_of(as_shipped("local"), cluster, TEAM, guards=True) as server:
        for edits, spec in pods():
            alone = server.ask(named("Pod", "restricted-alone", spec)).refusal
            if alone and "violates PodSecurity" not in alone:
                continue
            said = server.ask(named("Job", TEAM, {"suspend": True, "template": {"spec": spec}})).refusal
            ours = f"{NAME}" in said and "pods-that-never-start: " in said
            refused += ours
            if ours != bool(alone):
                different[edits] = f"{alone} -- {said}"
    assert different == {}
    assert refused > 100
