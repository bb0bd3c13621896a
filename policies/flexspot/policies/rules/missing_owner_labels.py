"""GPU capacity or GPU work without an owner label."""

import re

from flexspot.capacity.values.verdict import PASSES, Addition, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.objects import Namespace, named
from flexspot.policies.inventory.views import GpuPool, Inventory, PodSet
from flexspot.policies.judging import Parameter, Parameters, Rule
from flexspot.policies.values.field import UNKNOWN, Field, Tri, any_of

OWNERLESS = "it asks for GPUs, and neither its labels nor those of its namespace say whose it is"
OWNERLESS_REMEDY = "add the label {key} to it or to its namespace"


def judge(judged: GpuPool | PodSet, parameters: Parameters, inventory: Inventory) -> Outcome:
    """One of the wanted labels is enough. Work may have it from its namespace."""
    keys = parameters.texts("label-keys")
    if isinstance(judged, GpuPool):
        answer = _has(judged.owner_labels, keys)
        if answer is UNKNOWN:
            return undecided(f"{judged.owner_field} is not known yet")
        where = judged.owner_field
        if answer:
            return PASSES
        remedy, adds = f"add {_legal_key(keys, where)} to {where}", Addition(where, "", None)
        return fails(f"it creates GPU nodes, but {where} does not say who owns them", remedy, where, adds)
    asks = judged.asks_for_gpus
    if exempt := judged.not_gpu_work:
        return not_applicable(exempt)
    answer = any_of(_has(labels, keys) for labels in (judged.labels, judged.template_labels, judged.queue_labels))
    if answer is True:
        return PASSES
    return _by_namespace(judged, keys, inventory, undecided_yet=UNKNOWN in (answer, asks))


_GCP_KEY = re.compile(r"[a-z][a-z0-9_-]{0,62}")
"""docs.cloud.google.com/compute/docs/labeling-resources#requirements: no dots, slashes or capitals (2026-11-25)."""


def _legal_key(keys: tuple[str, ...], field: str) -> str:
    """The first of the keys that such a field takes: Google Cloud's labels take fewer than Kubernetes'."""
    return next((key for key in keys if not field.endswith("resourceLabels") or _GCP_KEY.fullmatch(key)), keys[0])


def _by_namespace(pods: PodSet, keys: tuple[str, ...], inventory: Inventory, *, undecided_yet: bool) -> Outcome:
    if pods.space is UNKNOWN:
        return undecided("its namespace is not known yet")
    of_it = [_has(each.labels, keys) for each in named(Namespace, pods.space, inventory)]
    if any_of(of_it) is True:
        return PASSES
    if undecided_yet or UNKNOWN in of_it:
        return undecided("its labels, or those of its namespace, are not known yet")
    if not of_it and not inventory.closed:
        return undecided("its namespace, which may have an owner label, is not in the input")
    return fails(OWNERLESS, OWNERLESS_REMEDY.format(key=keys[0]), "metadata.labels", Addition("metadata.labels", "", None))


def _has(labels: Field, keys: tuple[str, ...]) -> Tri:
    listed = labels.parts()
    found = any(key in keys and (not value.known or bool(value.text())) for key, value in listed.named)
    return found or (False if listed.complete else UNKNOWN)


RULE = Rule(
    code="FLX026",
    severity=Severity.LOW,
    judge_among=judge,
    why="Without an owner, no one pays for it, and no one is told before it is removed: chargeback and alerts use these labels.",
    remediation="Say in a label or a tag whose the pool or the work is.",
    link="https://kubernetes.io/docs/concepts/overview/working-with-objects/common-labels/",
    parameters=(
        Parameter(
            "label-keys",
            ("flexspot.dev/owner", "flexspot.dev/team", "owner", "team", "Owner", "Team", "cost-center", "cost_center"),
            "Keys of labels and tags, one of which names the owner.",
        ),
    ),
)
