"""What Kueue would refuse of queues, or hold inactive without a word, is refused before anything is registered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from components.kueue.queue_specs import STOP_POLICIES

if TYPE_CHECKING:
    from components.kueue.queue_args import QueueArgs, QueuesArgs

_MOST_OF_A_FLAVOR = 8
"""Labels, taints and tolerations each: the bounds of ResourceFlavor in kueue.x-k8s.io/v1beta2."""


def check_queues(name: str, args: QueuesArgs) -> None:
    """Raises ValueError for the first thing that is wrong."""
    flavors = {flavor["name"] for flavor in args["flavors"]}
    cohorts = {cohort["name"] for cohort in args["cohorts"]}
    owners = [("queue", queue["name"], queue["quotas"]) for queue in args["queues"]]
    owners += [("cohort", cohort["name"], cohort["quotas"]) for cohort in args["cohorts"]]
    _check_flavors(name, args)
    for kind, owner, quotas in owners:
        for quota in quotas:
            if quota["flavor"] not in flavors:
                allowed = ", ".join(sorted(flavors))
                raise ValueError(f"Queues {name}: {kind} {owner} has a quota of flavor {quota['flavor']}; flavors are {allowed}")
    for cohort in args["cohorts"]:
        if cohort["parent"] is not None and cohort["parent"] not in cohorts:
            allowed = ", ".join(sorted(cohorts))
            raise ValueError(f"Queues {name}: cohort {cohort['name']} is in cohort {cohort['parent']}; cohorts are {allowed}")
        _check_weight(name, "cohort", cohort["name"], cohort.get("weight", 1))
    for queue in args["queues"]:
        if queue["cohort"] not in cohorts:
            raise ValueError(
                f"Queues {name}: queue {queue['name']} is in cohort {queue['cohort']}; cohorts are {', '.join(sorted(cohorts))}"
            )
        _check_queue(name, queue)


def _check_flavors(name: str, args: QueuesArgs) -> None:
    for flavor in args["flavors"]:
        counts = {field: len(flavor[field]) for field in ("node_labels", "node_taints", "tolerations")}
        for field, count in counts.items():
            if count > _MOST_OF_A_FLAVOR:
                raise ValueError(f"Queues {name}: flavor {flavor['name']} has {count} {field}; Kueue takes {_MOST_OF_A_FLAVOR} at most")
        topology = flavor.get("topology")
        if topology and not flavor["node_labels"]:
            raise ValueError(f"Queues {name}: flavor {flavor['name']} has topology {topology} and no node_labels; give it one at least")


def _check_queue(name: str, queue: QueueArgs) -> None:
    _check_weight(name, "queue", queue["name"], queue.get("weight", 1))
    stop = queue.get("stop", "none")
    if stop not in STOP_POLICIES:
        raise ValueError(f"Queues {name}: queue {queue['name']} has stop {stop!r}; allowed: {', '.join(STOP_POLICIES)}")
    if not queue["quotas"]:
        raise ValueError(f"Queues {name}: queue {queue['name']} has no quotas; give it a quota, of 0 GPUs where it may borrow alone")
    own = [quota["flavor"] for quota in queue["quotas"]]
    for check in queue.get("admission_checks", []):
        for flavor in check["flavors"]:
            if flavor not in own:
                problem = f"has admission check {check['name']} on flavor {flavor}, of which it has no quota"
                raise ValueError(f"Queues {name}: queue {queue['name']} {problem}; its flavors are {', '.join(own)}")


def _check_weight(name: str, kind: str, owner: str, weight: int) -> None:
    # 0 is a weight to Kueue: one that never gets anything.
    if weight < 1:
        raise ValueError(f"Queues {name}: {kind} {owner} has weight {weight}; use 1 or more, or take away its share")
