"""Close a flavor for a while when the cloud has no machines for it.

Its pod runs this file from a ConfigMap, as `python3 stock_out_watch.py`, so it imports the standard library alone.

Kueue goes by quota: it admits a job again and again with the flavor that comes first, until it gives the job up. Kueue knows a flavor's
nodes by the taints in the ResourceFlavor, so a taint that no job tolerates closes it: the queue goes on to the team's next flavor, or lets
the job wait in its place. No node gets that taint, and running work continues.

A flavor in which work runs on borrowed GPUs stays open: their owner gets them back by preemption, and only in an open flavor.

Kueue looks at waiting work again when its queue, its cohort or other work of them changes, and not when a flavor does (v0.19.0,
pkg/controller/core/resourceflavor_controller.go and pkg/cache/queue/manager.go). So a round after a flavor was opened, a cohort without
queues and without quota, which exists for this alone, is changed.
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
from typing import Any

CREDENTIALS_VARIABLE, HOLD_VARIABLE = "FLEXSPOT_KUBERNETES_CREDENTIALS", "FLEXSPOT_HOLD_SECONDS"
COHORT_VARIABLE = "FLEXSPOT_COHORT_TO_CHANGE"
HOLD_KEY = "flexspot.dev/stock-out"
"""Of the taint. A job that would rather wait for its flavor than take another one tolerates it."""
UNTIL_ANNOTATION = "flexspot.dev/stock-out-until"
"""Of a flavor: until when it is closed. It outlives the taint by one round, until the work that waits is looked at again."""
FIELD_MANAGER = "flexspot-stock-out-watch"
"""The name under which the API server notes the fields that are written here."""
KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
KARPENTER_POOL, GKE_POOL = "karpenter.sh/nodepool", "cloud.google.com/gke-nodepool"
"""Node labels that say which pool a node is of; a flavor of one pool has that pool's."""

ROUND_SECONDS = 20.0
PATIENCE_SECONDS = 300.0
"""For how long a pod has no node before GKE's report counts: its autoscaler reports each zone, and tries the next one."""
_MOST_FAILURES = 15
_CONFLICT = 409

DEVICES = ("nvidia.com/gpu", "aws.amazon.com/neuron", "google.com/tpu")
"""The resources of accelerators. A flavor gives one of them, and its queues count the others at 0."""

Kube = dict[str, Any]
StockOut = tuple[str, str, float]
"""A label of nodes, its value, and when the cloud last had none of them, in seconds since 1970."""


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


def karpenter_stock_outs(events: list[Kube]) -> list[StockOut]:
    """Return the pools of which Karpenter reports that no machine type and no zone is left.

    Source: karpenter v1.14.1, pkg/controllers/nodeclaim/lifecycle/events.go, and scheduling/nodeclaimtemplate.go: a NodeClaim is called
    after its pool, with a hyphen and a random end.
    """
    found: list[StockOut] = []
    for event in events:
        about = event["involvedObject"]
        if event["reason"] == "InsufficientCapacityError" and about["kind"] == "NodeClaim":
            found.append((KARPENTER_POOL, about["name"].rpartition("-")[0], first_and_last(event)[1]))
    return found


def waits_for_a_node(pod: Kube) -> bool:
    """Return whether a pod is to run and has no node."""
    return not pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]


def gke_stock_outs(events: list[Kube], pods: dict[tuple[str, str], Kube], now: float) -> list[StockOut]:
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
    patient = [(pods[key], last) for key, (first, last) in times.items() if now - first >= PATIENCE_SECONDS and key in pods]
    selectors = [(pod["spec"].get("nodeSelector") or {}, last) for pod, last in patient if waits_for_a_node(pod)]
    return [(GKE_POOL, selector[GKE_POOL], last) for selector, last in selectors if GKE_POOL in selector]


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
    """Return until when a flavor is closed, in seconds since 1970; 0 without a stock-out of its pool, or for one of several pools."""
    labels = flavor["spec"].get("nodeLabels") or {}
    return max((last + hold for label, value, last in stock_outs if labels.get(label) == value), default=0.0)


def change_of(flavor: Kube, until: float, now: float) -> Kube | None:
    """Return the patch that closes a flavor until then, opens it, or removes its annotation; None where it is as it should be.

    It applies to the version that was read, so that it overwrites no other change.
    """
    taints = list(flavor["spec"].get("nodeTaints") or [])
    others = [each for each in taints if each["key"] != HOLD_KEY]
    written = (flavor["metadata"].get("annotations") or {}).get(UNTIL_ANNOTATION)
    version = flavor["metadata"]["resourceVersion"]
    if until > now:
        end = datetime.fromtimestamp(until, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")  # noqa: UP017 -- images may have an older Python
        if len(others) < len(taints) and written == end:
            return None
        taint = {"key": HOLD_KEY, "value": "true", "effect": "NoSchedule"}
        return {"metadata": {"resourceVersion": version, "annotations": {UNTIL_ANNOTATION: end}}, "spec": {"nodeTaints": [*others, taint]}}
    if len(others) == len(taints) and written is None:
        return None
    if len(others) < len(taints):
        # The annotation stays for was_opened: in this round Kueue may not know of the change yet.
        return {"metadata": {"resourceVersion": version}, "spec": {"nodeTaints": others}}
    return {"metadata": {"resourceVersion": version, "annotations": {UNTIL_ANNOTATION: None}}}


def was_opened(flavor: Kube) -> bool:
    """Return whether an earlier round opened a flavor, and Kueue has not looked at waiting work since."""
    closed = any(each["key"] == HOLD_KEY for each in flavor["spec"].get("nodeTaints") or [])
    return not closed and UNTIL_ANNOTATION in (flavor["metadata"].get("annotations") or {})


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
    if "annotations" not in change["metadata"]:
        return "reopened"
    until = change["metadata"]["annotations"][UNTIL_ANNOTATION]
    return f"closed until {until}, because the cloud has no machines for it" if until else "waiting work is reconsidered"


def _pods_of(environment: dict[str, str], events: list[Kube]) -> dict[tuple[str, str], Kube]:
    found: dict[tuple[str, str], Kube] = {}
    for about in (each["involvedObject"] for each in events if each["involvedObject"]["kind"] == "Pod"):
        try:
            path = f"/api/v1/namespaces/{about['namespace']}/pods/{about['name']}"
            found[(about["namespace"], about["name"])] = call(environment, path)
        except urllib.error.HTTPError as error:
            if error.code != 404:  # noqa: PLR2004 -- not found: it is gone
                raise
    return found


def look(environment: dict[str, str]) -> list[str]:
    """Close and open flavors once, and return a line for each change. Raises OSError when the API server refuses."""
    now, hold = time.time(), float(environment[HOLD_VARIABLE])
    events = [
        each
        for reason in ("InsufficientCapacityError", "FailedScaleUp")
        for each in _listed(environment, f"/api/v1/events?fieldSelector={urllib.parse.quote(f'reason={reason}')}")
    ]
    recent = [each for each in events if first_and_last(each)[1] + hold > now]
    stock_outs = [*karpenter_stock_outs(recent), *gke_stock_outs(recent, _pods_of(environment, recent), now)]
    open_for_owners = (
        lent(_listed(environment, f"{KUEUE}/clusterqueues"), _listed(environment, f"{KUEUE}/workloads")) if stock_outs else set()
    )
    changes: list[str] = []
    for flavor in _listed(environment, f"{KUEUE}/resourceflavors"):
        name = flavor["metadata"]["name"]
        until = 0.0 if name in open_for_owners else closed_until(flavor, stock_outs, hold)
        change = change_of(flavor, until, now)
        if change is None:
            continue
        if was_opened(flavor):
            # First, so that a round in which it fails is done again. Any other weight is a change; without queues it has no effect.
            weight = {"spec": {"fairSharing": {"weight": str(1 + int(now) % 1_000_000)}}}
            call(environment, f"{KUEUE}/cohorts/{environment[COHORT_VARIABLE]}", weight)
        try:
            call(environment, f"{KUEUE}/resourceflavors/{name}", change)
        except urllib.error.HTTPError as error:
            if error.code != _CONFLICT:
                raise
            continue
        changes.append(f"flavor {name}: {_in_words(change)}")
    return changes


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
