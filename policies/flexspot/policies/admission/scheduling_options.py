"""Facts about the platform's pools and queues in the policies, and the nodes that pods can run on, in CEL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexspot.capacity.catalog.accelerators import RESOURCES
from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.node_labels import COMPUTE_CLASS_LABEL, GKE_QUEUED_LABEL, GKE_SPOT_LABEL, QUEUE_LABEL
from flexspot.capacity.catalog.platform import Platform
from flexspot.policies.admission.cel import either, entry, every, first_of, let, list_at, mapping_at, sentence, text, text_at, texts
from flexspot.policies.inventory.pod_gpus import REQUIRED_TERMS
from flexspot.policies.pods.scheduling_options import BY_AFFINITY, BY_SELECTOR, DEFAULT_QUEUE, SPOT_LABELS, WITHOUT_DEFAULT_QUEUE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from flexspot.capacity.plan.model import FlavorPlan, Plan, PoolPlan, Taint, TeamPlan


WAY, DIRECT, QUEUED = "way.", "direct", "queued"
LABEL, VIA, TAINT = "label ", "via ", "taint "
NAMES_SPOT = "names-spot"
FLEX_START = "flex-start"
MOST_GPUS = "most-gpus"

_MARKS = {GKE_SPOT_LABEL: "true"}
"""Labels that GKE sets on every Spot node, in addition to the labels in the plan."""

_FLEX = frozenset({CapacityType.FLEX_START, CapacityType.QUEUED})

_GIVEN = frozenset({*RESOURCES, GKE_QUEUED_LABEL})
"""Taints whose toleration the cloud adds by itself. See flexspot.policies.pods.placement."""


def facts_of(plan: Plan) -> Mapping[str, str]:
    """Return the facts of a plan that are the same for all teams, by key."""
    pools = {pool.name: pool for pool in plan.pools}
    found = {f"{WAY}{pool.name}": _way(plan, pool, None) for pool in plan.pools}
    for flavor in plan.flavors:
        found |= {f"{WAY}{_through(flavor, name)}": _way(plan, pools[name], flavor) for name in flavor.pools}
    found[DIRECT] = "\n".join(pools)
    if plan.queues or plan.cpu_work:
        found[QUEUED] = "true"
    found[MOST_GPUS] = str(max(pool.gpus_per_node for pool in plan.pools))
    for route in plan.routes:
        if route.pools:
            most = max(pools[route_pool.pool].gpus_per_node for route_pool in route.pools)
            found[f"{MOST_GPUS}.{route.priority_class}"] = str(most)
    return dict(sorted(found.items()))


QUEUES, PROJECTS, CONTAINER_LIMITS, UNQUEUED = (f"flexspot.dev/{name}" for name in ("queues", "projects", "container-limits", "unqueued"))
"""Annotations of a team's namespace, which the policies read. Only the platform's operators may change a namespace."""


def team_annotations(plan: Plan, team: TeamPlan) -> dict[str, str]:
    """Return the facts of a plan that differ between teams, as annotations of the team's namespace.

    QUEUES has `NAME=FLAVOR.POOL,...` for each queue. A queue for work without GPUs leads to no pool. UNQUEUED has the pools that the team's
    other work may use.
    """
    flavors = {flavor.name: flavor for flavor in plan.flavors}
    queues = {
        queue.local_queue: [_through(flavors[quota.flavor], name) for quota in queue.quotas for name in flavors[quota.flavor].pools]
        for queue in plan.queues
        if queue.namespace == team.namespace
    }
    queues |= {queue.local_queue: [] for queue in plan.cpu_work.queues if queue.namespace == team.namespace} if plan.cpu_work else {}
    written = {
        QUEUES: " ".join(f"{name}={','.join(ways)}" for name, ways in sorted(queues.items())),
        PROJECTS: " ".join(sorted(team.projects)),
        CONTAINER_LIMITS: " ".join(f"{name}={most}" for name, most in team.container_limits.items()),
        UNQUEUED: " ".join(team.unqueued_pools),
    }
    return {name: value for name, value in written.items() if value}


def _through(flavor: FlavorPlan, pool: str) -> str:
    return f"{flavor.name}.{pool}"


def _way(plan: Plan, pool: PoolPlan, flavor: FlavorPlan | None) -> str:
    of_flavor = flavor.node_labels if flavor else dict[str, str]()
    labels = {**pool.selector, **of_flavor, **(_MARKS if plan.cloud is Platform.GKE and pool.capacity_type is CapacityType.SPOT else {})}
    names_spot = any(of_flavor.get(key) in values for key, values in SPOT_LABELS.items())
    via = f"flavor {flavor.name}" if flavor else ""
    lines = [f"NodePool {pool.name}", via, str(pool.notice_seconds or 0), NAMES_SPOT if names_spot else ""]
    lines += [FLEX_START] if pool.capacity_type in _FLEX else []
    lines += [f"{LABEL}{key}={value}" for key, value in sorted(labels.items())]
    lines += [f"{VIA}{key}={value}" for key, value in sorted(of_flavor.items())]
    lines += [f"{TAINT}{taint.key}={taint.value}:{taint.effect.value}" for taint in _own_tolerations(pool, flavor)]
    return "\n".join(lines)


def pool_lines(plan: Plan, pool: PoolPlan) -> tuple[str, ...]:
    """Return the name of a pool, and lines LABEL and TAINT for its nodes, without taints whose toleration the cloud adds."""
    return (pool.name, *(line for line in _way(plan, pool, None).split("\n") if line.startswith((LABEL, TAINT))))


def _own_tolerations(pool: PoolPlan, flavor: FlavorPlan | None) -> Iterator[Taint]:
    """Yield the taints that pods must tolerate by themselves, without duplicates."""
    given = _GIVEN | ({COMPUTE_CLASS_LABEL} & pool.selector.keys())
    added = {taint.key for taint in flavor.tolerated} if flavor else set[str]()
    kept = [taint for taint in pool.taints if taint.key not in given | added]
    yield from dict.fromkeys([*kept, *(flavor.node_taints if flavor else ())])


_ANNOTATIONS = mapping_at("namespaceObject", "metadata", "annotations")
QUEUES_OF_NAMESPACE = f"{entry(_ANNOTATIONS, text(QUEUES))}.split(' ').filter(q, q.contains('='))"
"""CEL for the annotation QUEUES, as a list."""

_LABELLED_QUEUE = f"variables.queueLabels[?{text(QUEUE_LABEL)}]"
_IS_THERE = "variables.queues.exists(q, q.startsWith({} + '='))"

QUEUE_NAME = first_of(
    (f"{_LABELLED_QUEUE}.hasValue()", f"{_LABELLED_QUEUE}.value()"),
    (f"!(object.kind in {texts(WITHOUT_DEFAULT_QUEUE)}) && {_IS_THERE.format(text(DEFAULT_QUEUE))}", text(DEFAULT_QUEUE)),
)
"""CEL for the LocalQueue of the object. Empty: none. Kueue assigns work without a label to the one called default."""

_KNOWN_QUEUE = every("variables.queue != ''", _IS_THERE.format("variables.queue"))
_NAMES = first_of(
    ("variables.queue == ''", f"{entry('variables.facts', text(DIRECT))}.split('\\n')"),
    (_KNOWN_QUEUE, "variables.queues.filter(q, q.startsWith(variables.queue + '='))[0].split('=')[1].split(',')"),
    otherwise="[]",
)
WAYS = f"({_NAMES}).filter(n, ({text(WAY)} + n) in variables.facts).map(n, variables.facts[{text(WAY)} + n].split('\\n'))"
"""CEL for the scheduling options of the object's pods, each a list of lines written by this module."""

_TOLERATED = either(
    every(f"{text_at('t', 'key')} == ''", f"{text_at('t', 'operator')} == 'Exists'"),
    every(
        f"{text_at('t', 'operator')} == 'Exists'",
        f"x.startsWith({text(TAINT)} + {text_at('t', 'key')} + '=')",
    ),
    f"x.startsWith({text(TAINT)} + {text_at('t', 'key')} + '=' + {text_at('t', 'value')} + ':')",
)
_SAME_EFFECT = f"{text_at('t', 'effect')} == '' || x.endsWith(':' + {text_at('t', 'effect')})"
TERMS = list_at("p.pod", *REQUIRED_TERMS)


def _meets(mark: str) -> str:
    """Return CEL that is true if the lines of `w` that begin with `mark` meet the node affinity expression `e`, like NodeOffer.meets."""
    key, operator, values = text_at("e", "key"), text_at("e", "operator"), list_at("e", "values")
    begins = f"{text(mark)} + {key} + '='"
    is_listed = f"{values}.exists(v, ({begins} + v) in w)"
    is_there = f"w.exists(x, x.startsWith({begins}))"
    return first_of(
        (f"{operator} == 'In'", is_listed),
        (f"{operator} == 'NotIn'", f"!{is_listed}"),
        (f"{operator} == 'Exists'", is_there),
        (f"{operator} == 'DoesNotExist'", f"!{is_there}"),
        otherwise="true",
    )


_TOLERATES = (
    f"w.filter(x, x.startsWith({text(TAINT)})).all(x, {list_at('p.pod', 'tolerations')}.exists(t, ({_TOLERATED}) && ({_SAME_EFFECT})))"
)

LANDS = every(
    f"{mapping_at('p.pod', 'nodeSelector')}.all(k, ({text(LABEL)} + k + '=' + string(p.pod.nodeSelector[k])) in w)",
    f"size({TERMS}) == 0 || {TERMS}.exists(t, {list_at('t', 'matchExpressions')}.all(e, {_meets(LABEL)}))",
    _TOLERATES,
)
"""CEL that is true if `p` can certainly run on the nodes of the option `w`."""

SPOT_WAYS = f"variables.ways.filter(w, w[2] != '0' && ({LANDS}))"
"""CEL for the options of `p` that certainly lead to nodes which the cloud reclaims."""

_SELECTOR = mapping_at("p.pod", "nodeSelector")
NAMES_SPOT_ITSELF = either(*(f"{entry(_SELECTOR, text(key))} in {texts(sorted(values))}" for key, values in SPOT_LABELS.items()))
_SAME = f"[x.substring({len(VIA)}).split('=')].exists(l, !(l[0] in {_SELECTOR}) || string(p.pod.nodeSelector[l[0]]) == l[1])"
_VIA_KEY = f"{text(VIA)} + {text_at('e', 'key')} + '='"
_LEFT_OPEN = either(f"!w.exists(x, x.startsWith({_VIA_KEY}))", _meets(VIA))
OPEN = every(
    f"w.filter(x, x.startsWith({text(VIA)})).all(x, {_SAME})",
    f"size({TERMS}) == 0 || {TERMS}.exists(t, {list_at('t', 'matchExpressions')}.all(e, {_LEFT_OPEN}))",
    _TOLERATES,
)
"""CEL that is true if Kueue may assign the flavor of the option `w` to `p`, because none of its requests excludes it."""
_NAMED = f"variables.ways.filter(w, w[1] != '' && ({OPEN}) && (w[3] == {text(NAMES_SPOT)} || ({NAMES_SPOT_ITSELF}))).map(w, w[1])"

_E_KEY, _E_VALUES = text_at("e", "key"), list_at("e", "values")
_DEMANDS_SPOT = every(
    f"{text_at('e', 'operator')} == 'In' && size({_E_VALUES}) > 0",
    either(*(f"{_E_KEY} == {text(key)} && {_E_VALUES}.all(v, v in {texts(sorted(values))})" for key, values in SPOT_LABELS.items())),
)
REQUIRES_SPOT_ITSELF = f"size({TERMS}) > 0 && {TERMS}.all(t, {list_at('t', 'matchExpressions')}.exists(e, {_DEMANDS_SPOT}))"
ITSELF = first_of((NAMES_SPOT_ITSELF, f"[{text(BY_SELECTOR)}]"), (REQUIRES_SPOT_ITSELF, f"[{text(BY_AFFINITY)}]"), otherwise="[]")
_ELSE = f"({REQUIRES_SPOT_ITSELF}) ? [{text(BY_AFFINITY)}] : []"

NAMED_BY = first_of(
    (f"!({_KNOWN_QUEUE})", ITSELF),
    otherwise=let("flavors", _NAMED, first_of(("size(flavors) > 0", "flavors"), otherwise=_ELSE)),
)
"""CEL for the fields of `p`, or flavors that Kueue may assign to it, that name Spot nodes of any pool."""

_GKE_KEYS = texts(sorted(key for key in SPOT_LABELS if key.startswith("cloud.google.com/")))
SPOT_IS_OF_GKE = either(
    f"{_SELECTOR}.exists(k, k in {_GKE_KEYS})",
    f"{TERMS}.exists(t, {list_at('t', 'matchExpressions')}.exists(e, {_E_KEY} in {_GKE_KEYS}))",
)
"""CEL that is true if the labels by which `p` requires Spot nodes are GKE's."""

SHOWN_BY = first_of(
    ("size(named) > 0", sentence("{via} names Spot nodes", via="named[0]")),
    otherwise=sentence("it may run on {pool}, which is Spot", pool="spot[0][0]"),
)
"""CEL for the reason why `p`, with its SPOT_WAYS as `spot` and its NAMED_BY as `named`, runs on Spot nodes."""


def on_spot(problem: str) -> str:
    """Return CEL for the problem of `p` if it certainly runs on Spot nodes. The problem may use `spot` and `named`."""
    return let("spot", SPOT_WAYS, let("named", NAMED_BY, first_of(("size(spot) > 0 || size(named) > 0", problem))))
