"""Close a flavor for a while when the cloud has no machines for it.

Its pod runs this file from a ConfigMap, as `python3 stock_out_watch.py`, so it imports the standard library alone.

Kueue goes by quota: it admits a job again and again with the flavor that comes first, until it gives the job up. Kueue knows a flavor's
nodes by the taints in the ResourceFlavor, so a taint that no job tolerates closes it: the queue goes on to the team's next flavor, or lets
the job wait in its place. No node gets that taint, and running work continues.

A flavor in which work runs on borrowed GPUs stays open: their owner gets them back by preemption, and only in an open flavor.

Only a refusal of the whole pool counts. A pod that asks for a zone, a machine or a disk of its own narrows the request, and the rest of the
pool may be there.

Kueue looks at waiting work again when a flavor's taints change (since v0.19.1, pkg/controller/core/resourceflavor_controller.go).
"""

from __future__ import annotations

import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Callable, Tuple  # noqa: UP035 -- images may have an older Python

CREDENTIALS_VARIABLE, HOLD_VARIABLE = "FLEXSPOT_KUBERNETES_CREDENTIALS", "FLEXSPOT_HOLD_SECONDS"
HOLD_KEY = "flexspot.dev/stock-out"
"""Of the taint. A job that would rather wait for its flavor than take another one tolerates it."""
UNTIL_ANNOTATION = "flexspot.dev/stock-out-until"
"""Of a flavor: until when it is closed."""
FIELD_MANAGER = "flexspot-stock-out-watch"
"""The name under which the API server notes the fields that are written here."""
KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
KARPENTER_POOL, GKE_POOL = "karpenter.sh/nodepool", "cloud.google.com/gke-nodepool"
"""Node labels that say which pool a node is of; a flavor of one pool has that pool's."""

ROUND_SECONDS = 20.0
PATIENCE_SECONDS = 300.0
"""For how long a pod has no node before GKE's report counts: its autoscaler reports each zone, and tries the next one."""
_MOST_FAILURES = 15
_NOT_FOUND, _CONFLICT = 404, 409

DEVICES = ("nvidia.com/gpu", "aws.amazon.com/neuron", "google.com/tpu")
"""The resources of accelerators. A flavor gives one of them, and its queues count the others at 0."""

Kube = dict[str, Any]
StockOut = tuple[str, str, float]
"""A label of nodes, its value, and when the cloud last had none of them, in seconds since 1970."""
Judge = Callable[[Tuple[str, str], str, str], bool]  # noqa: UP006 -- likewise
"""Function of a pod (namespace, name), a label and its value: true if the pod asks for all nodes with that label, and nothing narrower."""


def seconds(written: str | None) -> float:
    """Return a time as Kubernetes writes it in seconds since 1970; 0 for none."""
    # Before Python 3.11, Z was no time zone.
    return datetime.fromisoformat(written.replace("Z", "+00:00")).timestamp() if written else 0.0  # noqa: FURB162


def first_and_last(event: Kube) -> tuple[float, float]:
    """Return when an event was seen first and last, whichever API it was written by."""
    created = event.get("eventTime") or event["metadata"].get("creationTimestamp")
    series = event.get("series") or {}
    last = series.get("lastObservedTime") or event.get("lastTimestamp") or created
    return seconds(event.get("firstTimestamp") or created), seconds(last)


def nominations(events: list[Kube]) -> dict[str, set[tuple[str, str]]]:
    """Return the pods for which Karpenter created each NodeClaim: namespace and name, by name of the claim.

    Source: karpenter v1.14.1, pkg/controllers/provisioning/scheduling/events.go: "Pod should schedule on: nodeclaim/NAME, node/NAME".
    """
    found: dict[str, set[tuple[str, str]]] = {}
    for event in events:
        if event["reason"] == "Nominated":
            about = event["involvedObject"]
            for target in event.get("message", "").rpartition(": ")[2].split(", "):
                kind, _, name = target.partition("/")
                if kind == "nodeclaim":
                    found.setdefault(name, set()).add((about["namespace"], about["name"]))
    return found


def karpenter_stock_outs(events: list[Kube], asks_for_all_of: Judge) -> list[StockOut]:
    """Return the pools of which Karpenter reports that no machine type and no zone is left, for pods that ask for nothing narrower.

    A claim whose pods are not known does not count.

    Source: karpenter v1.14.1, pkg/controllers/nodeclaim/lifecycle/events.go, and scheduling/nodeclaimtemplate.go: a NodeClaim is called
    after its pool, with a hyphen and a random end.
    """
    found: list[StockOut] = []
    pods_of = nominations(events)
    for event in events:
        about = event["involvedObject"]
        if event["reason"] == "InsufficientCapacityError" and about["kind"] == "NodeClaim":
            pool, pods = about["name"].rpartition("-")[0], pods_of.get(about["name"], set())
            if pods and all(asks_for_all_of(pod, KARPENTER_POOL, pool) for pod in pods):
                found.append((KARPENTER_POOL, pool, first_and_last(event)[1]))
    return found


def waits_for_a_node(pod: Kube) -> bool:
    """Return whether a pod is to run and has no node."""
    return not pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]


def gke_stock_outs(events: list[Kube], pods: dict[tuple[str, str], Kube], now: float, asks_for_all_of: Judge) -> list[StockOut]:
    """Return the same of GKE's autoscaler, which reports each zone of a pod separately; only pods without a node count.

    Source: the event's text in public records, such as kubectl's output of 2024-10-24: "Node scale up in zones us-central1-b associated
    with this pod failed: GCE out of resources. Pod is at risk of not being scheduled."
    """
    times: dict[tuple[str, str], tuple[float, float]] = {}
    for event in events:
        about = event["involvedObject"]
        if event["reason"] == "FailedScaleUp" and about["kind"] == "Pod" and "out of resources" in event.get("message", ""):
            key = (about["namespace"], about["name"])
            first, last = first_and_last(event)
            known = times.get(key, (first, last))
            times[key] = (min(first, known[0]), max(last, known[1]))
    found: list[StockOut] = []
    for key, (first, last) in times.items():
        if now - first >= PATIENCE_SECONDS and key in pods and waits_for_a_node(pods[key]):
            pool = (pods[key]["spec"].get("nodeSelector") or {}).get(GKE_POOL)
            if pool and asks_for_all_of(key, GKE_POOL, pool):
                found.append((GKE_POOL, pool, last))
    return found


_ANY_NODE = {"kubernetes.io/os": "linux"}


def claims_of(pod: Kube) -> list[str]:
    """Return the names of the claims that a pod mounts."""
    volumes = pod["spec"].get("volumes") or []
    return [each["persistentVolumeClaim"]["claimName"] for each in volumes if "persistentVolumeClaim" in each]


def asks_for_nothing_else(pod: Kube, labels: dict[str, str], claims: dict[str, Kube]) -> bool:
    """Return whether any node with these labels would do for a pod, wherever it is.

    `claims` are those of its namespace that exist, by name. A claim without a class is the platform's: of a bucket or a file system.
    """
    spec = pod["spec"]
    affinity = spec.get("affinity") or {}
    of_nodes = affinity.get("nodeAffinity") or {}
    required = (of_nodes.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms") or []
    near = [affinity.get(each) for each in ("podAffinity", "podAntiAffinity")]

    def is_met(term: Kube) -> bool:
        expressions = term.get("matchExpressions") or []
        return not term.get("matchFields") and all(
            each["operator"] == "In" and labels.get(each["key"]) in (each.get("values") or []) for each in expressions
        )

    return (
        all({**_ANY_NODE, **labels}.get(key) == value for key, value in (spec.get("nodeSelector") or {}).items())
        and (not required or any(map(is_met, required)))
        and not of_nodes.get("preferredDuringSchedulingIgnoredDuringExecution")
        and not any(near)
        and not spec.get("topologySpreadConstraints")
        and not any("ephemeral" in each for each in spec.get("volumes") or [])
        and all(name in claims and claims[name]["spec"].get("storageClassName") == "" for name in claims_of(pod))
    )


def lent(queues: list[Kube], workloads: list[Kube]) -> set[str]:
    """Return the flavors in which a queue holds more devices than it owns, and has running work.

    Computed from quotas and admissions: the status of a queue follows a while later.
    """
    left: dict[tuple[str, str], int] = {}
    for queue in queues:
        for group in queue["spec"].get("resourceGroups") or []:
            for flavor in group["flavors"]:
                own = (each["nominalQuota"] for each in flavor["resources"] if each["name"] in DEVICES)
                left[(queue["metadata"]["name"], flavor["name"])] = sum(map(count, own))
    held = [(_held(each), _runs(each)) for each in workloads]
    for each, _ in held:
        for place, gpus in each:
            left[place] = left.get(place, 0) - gpus
    return {place[1] for each, runs in held if runs for place, _ in each if left[place] < 0}


def count(quantity: object) -> int:
    """Return the number of devices of a quantity, such as 4 or 1k."""
    text = str(quantity)
    return 1000 * int(text[:-1]) if text.endswith("k") else int(text)


def _held(workload: Kube) -> list[tuple[tuple[str, str], int]]:
    """Return the queue and the flavor of a workload's devices, and their number; nothing for one that holds none."""
    admission = (workload.get("status") or {}).get("admission")
    if not admission or _has(workload, "Finished"):
        return []
    return [
        ((admission["clusterQueue"], each["flavors"][device]), count(each["resourceUsage"][device]))
        for each in admission.get("podSetAssignments") or []
        for device in DEVICES
        if device in (each.get("flavors") or {})
    ]


def _runs(workload: Kube) -> bool:
    return _has(workload, "PodsReady")


def _has(workload: Kube, condition: str) -> bool:
    return any(each["type"] == condition and each["status"] == "True" for each in (workload.get("status") or {}).get("conditions") or [])


def closed_until(flavor: Kube, stock_outs: list[StockOut], hold: float) -> float:
    """Return until when a flavor is closed, in seconds since 1970; 0 without a stock-out of its pool, or for one of several pools.

    A time that was written stays: the pods that asked for the pool may be gone since.
    """
    labels = flavor["spec"].get("nodeLabels") or {}
    written = seconds((flavor["metadata"].get("annotations") or {}).get(UNTIL_ANNOTATION))
    return max([written, *(last + hold for label, value, last in stock_outs if labels.get(label) == value)])


def change_of(flavor: Kube, until: float, now: float) -> Kube | None:
    """Return the patch that closes a flavor until then, or opens it; None where it is as it should be.

    It applies to the version that was read, so that it overwrites no other change.
    """
    taints = list(flavor["spec"].get("nodeTaints") or [])
    others = [each for each in taints if each["key"] != HOLD_KEY]
    written = (flavor["metadata"].get("annotations") or {}).get(UNTIL_ANNOTATION)
    end = None
    if until > now:
        end = datetime.fromtimestamp(until, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")  # noqa: UP017 -- images may have an older Python
    wanted = [*others, {"key": HOLD_KEY, "value": "true", "effect": "NoSchedule"}] if end else others
    if written == end and len(wanted) == len(taints):
        return None
    metadata = {"resourceVersion": flavor["metadata"]["resourceVersion"], "annotations": {UNTIL_ANNOTATION: end}}
    return {"metadata": metadata, "spec": {"nodeTaints": wanted}}


def call(environment: dict[str, str], path: str, patch: Kube | None = None) -> Kube:
    """Return the API server's answer. Raises OSError (urllib.error.HTTPError) for a refusal."""
    folder = Path(environment[CREDENTIALS_VARIABLE])
    host = environment["KUBERNETES_SERVICE_HOST"]
    address = f"[{host}]" if ":" in host else host
    # Strict, so that a field which the API server does not know is an error and not dropped.
    written = f"?fieldManager={FIELD_MANAGER}&fieldValidation=Strict" if patch else ""
    request = urllib.request.Request(
        f"https://{address}:{environment['KUBERNETES_SERVICE_PORT']}{path}{written}",
        method="PATCH" if patch else "GET",
        data=json.dumps(patch).encode() if patch else None,
        headers={"Authorization": f"Bearer {(folder / 'token').read_text()}", "Content-Type": "application/merge-patch+json"},
    )
    trust = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    with urllib.request.urlopen(request, timeout=30, context=trust) as answer:  # noqa: S310 -- the API server's own
        return json.loads(answer.read())


def _listed(environment: dict[str, str], path: str) -> list[Kube]:
    return call(environment, path).get("items") or []


def _in_words(change: Kube) -> str:
    until = change["metadata"]["annotations"][UNTIL_ANNOTATION]
    return f"closed until {until}, because the cloud has no machines for it" if until else "reopened"


def _found(environment: dict[str, str], path: str) -> Kube | None:
    """Return an object. None: it is gone."""
    try:
        return call(environment, path)
    except urllib.error.HTTPError as error:
        if error.code == _NOT_FOUND:
            return None
        raise


def look(environment: dict[str, str]) -> list[str]:
    """Close and open flavors once, and return a line for each change. Raises OSError when the API server refuses."""
    now, hold = time.time(), float(environment[HOLD_VARIABLE])
    events = [
        each
        for reason in ("InsufficientCapacityError", "FailedScaleUp", "Nominated")
        for each in _listed(environment, f"/api/v1/events?fieldSelector={urllib.parse.quote(f'reason={reason}')}")
    ]
    flavors = _listed(environment, f"{KUEUE}/resourceflavors")
    stock_outs = stock_outs_of([each for each in events if first_and_last(each)[1] + hold > now], flavors, now, environment)
    open_for_owners = (
        lent(_listed(environment, f"{KUEUE}/clusterqueues"), _listed(environment, f"{KUEUE}/workloads")) if stock_outs else set()
    )
    changes: list[str] = []
    for flavor in flavors:
        name = flavor["metadata"]["name"]
        until = 0.0 if name in open_for_owners else closed_until(flavor, stock_outs, hold)
        change = change_of(flavor, until, now)
        if change is None:
            continue
        try:
            call(environment, f"{KUEUE}/resourceflavors/{name}", change)
        except urllib.error.HTTPError as error:
            if error.code != _CONFLICT:
                raise
            continue
        changes.append(f"flavor {name}: {_in_words(change)}")
    return changes


def stock_outs_of(events: list[Kube], flavors: list[Kube], now: float, environment: dict[str, str]) -> list[StockOut]:
    """Return the pools that recent events report as empty. Raises OSError when the API server refuses."""
    missing = [each for each in events if each["reason"] != "Nominated"]
    claims_without_machines = {each["involvedObject"]["name"] for each in missing}
    waiting = {pod for claim, pods in nominations(events).items() if claim in claims_without_machines for pod in pods}
    waiting |= {
        (each["involvedObject"]["namespace"], each["involvedObject"]["name"]) for each in missing if each["reason"] == "FailedScaleUp"
    }
    pods = {pod: each for pod in waiting if (each := _found(environment, f"/api/v1/namespaces/{pod[0]}/pods/{pod[1]}"))}

    def asks_for_all_of(pod: tuple[str, str], label: str, pool: str) -> bool:
        labels = [each["spec"].get("nodeLabels") or {} for each in flavors]
        of_pool = [each for each in labels if each.get(label) == pool]
        if pod not in pods or not of_pool:
            return False
        path = f"/api/v1/namespaces/{pod[0]}/persistentvolumeclaims"
        claims = {name: each for name in claims_of(pods[pod]) if (each := _found(environment, f"{path}/{name}"))}
        return asks_for_nothing_else(pods[pod], of_pool[0], claims)

    return [*karpenter_stock_outs(events, asks_for_all_of), *gke_stock_outs(events, pods, now, asks_for_all_of)]


def main() -> None:
    """Look until the pod is stopped. Raises OSError after five minutes without an answer, so that the kubelet restarts it."""
    failures = 0
    while True:
        try:
            for line in look(dict(os.environ)):
                print(line, flush=True)  # noqa: T201 -- the pod's log
            failures = 0
        except OSError as error:
            failures += 1
            print(f"no answer from the API server ({failures} of {_MOST_FAILURES}): {error}", file=sys.stderr, flush=True)  # noqa: T201 -- likewise
            if failures >= _MOST_FAILURES:
                raise
        time.sleep(ROUND_SECONDS)


if __name__ == "__main__":
    main()
