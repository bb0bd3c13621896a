"""Helpers: services on the shipped stacks, and a stack whose notebooks do not wait in a queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import plan_settings
from plan_settings import local, pool
from workload_plans import plan_of

from flexspot.capacity.workloads.kinds import objects_of

if TYPE_CHECKING:
    from flexspot.capacity.plan.model import Plan
    from flexspot.capacity.workloads.pods import KubeObject

JUPYTER = "quay.io/jupyter/base-notebook:2026-11-01"
SERVER = "registry.example.com/search/ranker:2.1"

SQS = "https://sqs.us-east-1.amazonaws.com/111122223333/prod_nlp_work"
PUBSUB = "projects/acme-ai-prod/subscriptions/prod.nlp.work"
QUEUES = {"gke": PUBSUB, "eks": SQS, "local": "http://127.0.0.1:5000/111122223333/work"}

_USUAL: dict[str, dict[str, Any]] = {
    "queue-workers": {"workload_class": "best-effort", "image": SERVER},
    "model-server": {"workload_class": "inference", "image": SERVER},
    "notebook": {"workload_class": "interactive", "image": JUPYTER},
    "model-cache": {"bucket": "acme-ai-prod-prod-datasets"},
}


def standing_plan(team: str = "search", **route: Any) -> Plan:
    """Return a plan with notebooks for one team that do not wait in a queue, because its interactive class is for services."""
    pools = [pool("l4-spot", "g6.xlarge", "spot", 4, "training"), pool("l4-desk", "g6.xlarge", "on-demand", 2, "interactive")]
    owner = {"name": team, "shares": {"l4-spot": 2}, "unqueued": {"l4-desk": 1}, "submitters": ["ml-search"]}
    classes = {"interactive": {"queued": False, "capacity": ["on-demand"], **route}}
    return plan_settings.plan_of(local(*pools, classes=classes, teams=[owner]))


def service(plan: Plan | str, kind: str, **fields: Any) -> tuple[KubeObject, ...]:
    """Return the objects of a service on a plan or on a shipped stack, of team search if there is one."""
    plan = plan_of(plan) if isinstance(plan, str) else plan
    teams = [each.name for each in plan.teams]
    usual = {"name": "desk", "team": "search" if "search" in teams else teams[-1], **_USUAL[kind]}
    queue = {"queue": QUEUES[plan.cloud.value]} if kind == "queue-workers" else {}
    return objects_of(plan, kind, {**usual, **queue, **fields})


def of_kind(objects: tuple[KubeObject, ...], kind: str) -> KubeObject:
    """Return the only object of a kind."""
    [found] = [each for each in objects if each["kind"] == kind]
    return found
