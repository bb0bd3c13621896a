"""The policies that enforce a team's guarantee in the cluster: guarantee.yaml with the facts of a plan.

Other rules are about mistakes, which users may accept in writing. These protect other teams, and volume claims of the platform, from people
with a team's rights. They cannot be suppressed, they refuse what they cannot evaluate, and objects that controllers create from admitted
work are not judged again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from flexspot.capacity.catalog.accelerators import ACCELERATORS, RESOURCES
from flexspot.capacity.catalog.node_labels import AUTO_MODE_INSTANCE, COMPUTE_CLASS_LABEL, KARPENTER_INSTANCE, WHOLE_NODE_TAINT
from flexspot.capacity.workloads.inputs import VISIBLE_DEVICES
from flexspot.policies.admission.cel import either, every, list_at, text, texts
from flexspot.policies.admission.pods import QUEUED_KINDS, UNQUEUED_KINDS
from flexspot.policies.admission.policy import AdmissionPolicy, Expression, ResourceRule, of_pod_makers, validation, variable_of
from flexspot.policies.admission.scheduling_options import pool_lines
from flexspot.policies.admission.variables import shared_variables, used_by
from flexspot.policies.admission.written import Names, read
from flexspot.policies.inventory.pod_gpus import ELEMENTS, POD_MAKERS
from flexspot.policies.rules.interruptions import grace_exceeds_notice

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flexspot.capacity.plan.model import Plan

LONGEST_NOTICE_SECONDS = grace_exceeds_notice.defaults().number("longest-seconds")
"""The longest notice of a Spot interruption. A grace period up to it is allowed everywhere."""

_TEXT: Final = read("guarantee.yaml")
_NAMES: Final = Names(facts={**_TEXT["lists"], **_TEXT["patterns"]})

NAME, LEAVING, OF_CLAIMS, ENDING, GPUS_OF_TEAMS = (str(each["name"]) for each in _TEXT["policies"])
"""Names of the policies about created and updated work, deleted work, volume claims, Jobs that are about to end, and other namespaces."""


@dataclass(frozen=True)
class Guarantee:
    """Facts of a plan that the rules of a team's guarantee use. Those that differ between teams are in `team_annotations`."""

    queued: Mapping[str, int | None]
    """PriorityClasses of queued work, with the longest run in seconds. None: no limit."""
    unqueued: tuple[str, ...]
    """PriorityClasses of other work."""
    longest_grace: int
    """Longest grace period in seconds."""
    topology_levels: tuple[str, ...] = ()
    """Node labels by which queued work may ask for a topology."""
    gpu_node_labels: tuple[str, ...] = ()
    """Keys of node labels such that each GPU node has at least one, and no other node has any."""
    pool_label: str = ""
    """Node label that names a pool. Empty on Autopilot, which has none."""
    pools: tuple[tuple[str, ...], ...] = ()
    """Each pool's name, labels and taints, as `pool_lines` returns them."""


def guarantee_of(plan: Plan) -> Guarantee:
    """Return the guarantee of a plan."""
    queued = {route.priority_class: route.max_run_seconds for route in plan.routes if route.queued}
    return Guarantee(
        queued=dict(sorted(queued.items())),
        unqueued=tuple(sorted({each.name for each in plan.priorities} - queued.keys())),
        longest_grace=max([LONGEST_NOTICE_SECONDS, *(route.grace_seconds for route in plan.routes)]),
        topology_levels=tuple(sorted({level for topology in plan.topologies for level in topology.levels})),
        gpu_node_labels=tuple(sorted({_gpu_label(flavor.node_labels) for flavor in plan.flavors})),
        pool_label=next((pool.pool_label[0] for pool in plan.pools if pool.pool_label), ""),
        pools=tuple(pool_lines(plan, pool) for pool in plan.pools),
    )


_DEVICE_LABELS = frozenset(
    label
    for each in ACCELERATORS
    for label in (each.gke_label, *(each.labels(prefix)[0] for prefix in (KARPENTER_INSTANCE, AUTO_MODE_INSTANCE)))
)


def _gpu_label(labels: Mapping[str, str]) -> str:
    """Return the key that distinguishes a flavor's nodes from nodes without GPUs. A compute class's flavor has no other label."""
    return min(labels.keys() & _DEVICE_LABELS, default=COMPUTE_CLASS_LABEL)


def guarantee_policies(guarantee: Guarantee) -> tuple[AdmissionPolicy, ...]:
    """Return the policies of guarantee.yaml, in its order, whose rules cannot be suppressed."""
    variables = {name: _NAMES.cel(each) for name, each in _TEXT["variables"].items()}
    own = {**_constants(guarantee), **variables, "violations": _violations()}
    return tuple(_policy(each, own) for each in _TEXT["policies"])


def _constants(guarantee: Guarantee) -> dict[str, str]:
    seconds = {name: most or 0 for name, most in guarantee.queued.items()}
    # Without a class: the longest limit of any class, or none if a class has no limit.
    longest = 0 if 0 in seconds.values() else max(seconds.values(), default=0)
    groups = dict.fromkeys(path.split(f".{ELEMENTS}")[0] for maker in POD_MAKERS.values() for path in maker.paths if ELEMENTS in path)
    sizes = ", ".join(f"size({list_at('object', *path.split('.'))})" for path in groups)
    return {
        "queuedClasses": "{" + ", ".join(f"{text(name)}: {most}" for name, most in seconds.items()) + "}",
        "queuedNames": texts(seconds),
        "unqueuedClasses": texts(guarantee.unqueued),
        "longestGrace": str(guarantee.longest_grace),
        "longestRun": str(longest),
        "topologyLevels": texts(guarantee.topology_levels),
        "devices": texts(RESOURCES),
        "gpuNames": text(" or ".join(RESOURCES)),
        "deviceTaints": texts(("nvidia.com/", *RESOURCES)),
        "visibleDevices": text(VISIBLE_DEVICES),
        "queuedKinds": texts(QUEUED_KINDS),
        "unqueuedKinds": texts(UNQUEUED_KINDS),
        "groupsOfPods": f"[{sizes}].max()",
        "wholeNode": text(WHOLE_NODE_TAINT),
        "gpuNodeLabels": texts(guarantee.gpu_node_labels),
        "poolLabel": text(guarantee.pool_label or "the labels that flexspot render writes"),
        "pools": f"[{', '.join(map(texts, guarantee.pools))}]",
    }


def _violations() -> str:
    found = ", ".join(f"({condition}) ? {text(words)} : ''" for words, condition in _TEXT["podSecurity"].items())
    return f"variables.pods.map(p, {{'where': dyn(p.where), 'words': dyn([{found}].filter(w, w != ''))}})"


def _policy(written: dict[str, Any], own: Mapping[str, str]) -> AdmissionPolicy:
    rules = written["rules"]
    problems = [Expression(variable_of(each["rule"]), " + ".join(map(_NAMES.problems, each["problems"]))) for each in rules]
    conditions = {"sent-by-people": SENT_BY_PEOPLE} if written.get("by-people") else {}
    conditions |= written.get("when", {})
    others = (ResourceRule(each["group"], tuple(each["resources"]), tuple(each["operations"])) for each in written.get("others", ()))
    return AdmissionPolicy(
        name=written["name"],
        stops=True,
        guards=True,
        elsewhere=written.get("elsewhere", False),
        resource_rules=(*(of_pod_makers(*written["makers"]) if "makers" in written else ()), *others),
        conditions=tuple(Expression(*each) for each in conditions.items()),
        variables=(
            *(Expression(*each) for each in used_by((each.expression for each in problems), {**shared_variables({}), **own})),
            *problems,
        ),
        validations=tuple(validation(each["rule"], f"{each['rule']}: ", each["title"]) for each in rules),
    )


_ITS_VERB = "(request.operation == 'UPDATE' ? ['update', 'patch'] : [request.operation.lowerAscii()])"
MAY_EVERYWHERE = (
    f"{_ITS_VERB}.exists(v, authorizer.group(request.resource.group).resource(request.resource.resource)"
    ".namespace('kube-system').check(v).allowed())"
)
"""CEL that is true if the sender may do the same in kube-system, where no team has rights: a controller of the whole cluster."""

_USER = "request.userInfo.username"
_KUBERNETES = ("system:kube-controller-manager", "system:apiserver")

_CONTROLLERS = either(
    f"{_USER} in {texts(_KUBERNETES)}",
    f"{_USER}.startsWith('system:node:')",
    every(f"{_USER}.startsWith('system:serviceaccount:')", MAY_EVERYWHERE),
)
SENT_BY_PEOPLE = f"!({_CONTROLLERS})"
"""CEL that is true if people or their programs sent the request.

Excludes users of Kubernetes itself, and service accounts with rights in the whole cluster.
"""
