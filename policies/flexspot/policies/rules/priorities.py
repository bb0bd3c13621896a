"""Priorities of pods and workloads, and what they may preempt."""

from decimal import Decimal

from flexspot.capacity.values.verdict import NOT_APPLICABLE, PASSES, Outcome, Severity, fails, undecided
from flexspot.policies.inventory.objects import ClusterQueue, ComputeClassView, KarpenterControllerView, KarpenterNodePool, PriorityClass
from flexspot.policies.inventory.views import Inventory, PodSet, Pool
from flexspot.policies.judging import Level, Parameter, Parameters, Rule
from flexspot.policies.queues import fair_sharing
from flexspot.policies.values.field import UNKNOWN, Tri, Unknown

SCALE_UP_CUT_OFF = -10
"""Priority below which the cluster autoscaler creates no node.

Same as in flexspot.capacity.catalog.workload_classes, which lint never loads.
"""


def is_of_pods(priority: PriorityClass) -> bool:
    """Return whether it is a PriorityClass of Kubernetes (not Kueue), other than its system classes."""
    return priority.group == "scheduling.k8s.io" and not priority.identity.name.startswith("system-")


def value_of(priority: PriorityClass) -> Decimal | Unknown:
    """Return the priority of the class. Default: 0."""
    value = priority.fields.at("value")
    number = value.number()
    return Decimal(0) if number is None else number


def below_scale_up(priority: PriorityClass, inventory: Inventory) -> Tri:
    """Return whether no autoscaler creates a node for the pods of the class.

    Karpenter has no such cutoff. UNKNOWN if the input does not show which autoscaler is used.
    """
    value = value_of(priority)
    if value is UNKNOWN:
        return UNKNOWN
    others = [
        pool for pool in inventory.of(Pool) if pool.identity.kind != "NodePool" or not pool.identity.api_version.startswith("karpenter.sh")
    ]
    if value >= SCALE_UP_CUT_OFF or others or inventory.of(ComputeClassView):
        return value < SCALE_UP_CUT_OFF
    karpenter = inventory.of(KarpenterNodePool) or inventory.of(KarpenterControllerView)
    return False if karpenter else inventory.closed or UNKNOWN


def defaults(inventory: Inventory) -> tuple[PriorityClass, ...]:
    """Return the default classes, which pods without a class get."""

    def found() -> tuple[PriorityClass, ...]:
        classes = (each for each in inventory.of(PriorityClass) if is_of_pods(each))
        return tuple(each for each in classes if each.fields.at("globalDefault").equals("true") is True)

    return inventory.once("default priority classes", None, found)


def users_of(priority: PriorityClass, inventory: Inventory) -> list[PodSet]:
    """Return the pod sets that use the class."""
    by_class = inventory.by("priority class", PodSet, lambda each: each.pod.at("priorityClassName").text())
    return by_class.get(priority.name.text(), [])


_AT = "spec.preemption.borrowWithinCohort.maxPriorityThreshold"


@Rule(
    code="FLX036",
    severity=Severity.MEDIUM,
    level=Level.ADVISORY,
    why="maxPriorityThreshold limits the priority of victims, not borrowers: if set to that of training, borrowers can preempt training.",
    remediation="Set it to the highest priority that may be preempted for a borrower, below every class that must keep running.",
    link="https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/#preemption",
    sources=('Kueue 0.19, apis/kueue/v1beta2: "only workloads with priority less than or equal to the specified threshold".',),
    parameters=(
        Parameter("protected-words", ("train", "production"), "Words in the name of a priority class whose work must not be preempted."),
    ),
)
def borrow_threshold_misread(queue: ClusterQueue, parameters: Parameters, inventory: Inventory) -> Outcome:
    """A threshold intended to limit who may borrow, but which sets whom borrowers may preempt.

    The intention is not visible in the input. The evidence is that a protected class is among the possible victims.
    """
    borrow = queue.spec.at("preemption", "borrowWithinCohort")
    if (
        borrow.at("policy").equals("LowerPriority") is False
        or borrow.at("maxPriorityThreshold").absent
        or fair_sharing(inventory)[0] is True
    ):
        return NOT_APPLICABLE
    threshold = borrow.at("maxPriorityThreshold").number() if borrow.at("policy").known else UNKNOWN
    words = parameters.texts("protected-words")
    named = [(each.identity.name, each.fields.at("value").number()) for each in inventory.of(PriorityClass)]
    guarded = [(value, name) for name, value in named if any(word in name for word in words)]
    if isinstance(threshold, Decimal):
        victims = sorted((value, name) for value, name in guarded if isinstance(value, Decimal) and value <= threshold)
        if victims:
            names = ", ".join(sorted({name for _, name in victims}))
            return fails(
                f"{_AT} is {threshold}: workloads that borrow may preempt any priority up to it, which includes {names}",
                f"set it below {victims[0][0]}, to the highest priority that borrowing workloads may preempt",
                _AT,
            )
    if threshold is UNKNOWN or any(value is UNKNOWN for value, _ in guarded) or not inventory.can_judge_missing(PriorityClass):
        return undecided("its threshold, or the set of PriorityClasses, is not known")
    return PASSES


@Rule(
    code="FLX049",
    severity=Severity.MEDIUM,
    level=Level.ADVISORY,
    why="A debug pod, a chart's Deployment, or anything else without a class ends a training job that has run for days, without notice.",
    remediation="Give work that may be preempted a small value above 0; between classes, the order matters, not the sign.",
    link="https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/",
    parameters=(
        Parameter(
            "words",
            ("balloon", "headroom", "overprovision", "pause", "placeholder", "preemptible", "spare"),
            "Words in the name of a class whose pods are only placeholders.",
        ),
    ),
)
def preemptible_by_default_pods(priority: PriorityClass, parameters: Parameters, inventory: Inventory) -> Outcome:
    """A PriorityClass so low that any pod without a class preempts its pods.

    Pods without a class have priority 0 or that of the default class. Placeholder pods are exempt, because they are created to be
    preempted.
    """
    below = below_scale_up(priority, inventory)
    if not is_of_pods(priority) or below is True:
        return NOT_APPLICABLE
    name, value = priority.identity.name.lower(), value_of(priority)
    requests = [each.requests_gpus for each in users_of(priority, inventory)]
    if any(word in name for word in parameters.texts("words")) or (requests and not any(each is not False for each in requests)):
        return NOT_APPLICABLE
    values = [value_of(each) for each in defaults(inventory)]
    if UNKNOWN in (value, *values):
        return undecided("its value, or that of the default class, is not known yet")
    default = min((each for each in values if each is not UNKNOWN), default=Decimal(0))
    if value is not UNKNOWN and (value >= 0 or value >= default):
        return PASSES
    others = any(is_of_pods(each) and each.identity != priority.identity for each in inventory.of(PriorityClass))
    if below is UNKNOWN or not (others or any(each is True for each in requests) or inventory.closed):
        return undecided(f"value is {value}; the pods that use the class, and the default class, are not in the input")
    return fails(
        f"value is {value}, but pods without a class have {default}: each of them may preempt a pod of this class",
        f"set it to {max(default, Decimal(0))} or more, with preemptionPolicy: Never for work that must not preempt",
        "value",
    )


@Rule(
    code="FLX048",
    severity=Severity.MEDIUM,
    level=Level.ADVISORY,
    why="Pods below the cutoff run only on spare nodes: on a pool that scales from zero they wait forever, and nothing says why.",
    remediation="Give work that should get nodes a value of 0 or more; order it with lower and higher values above that.",
    link="https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md",
    sources=(
        "https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/#priorityclass",
        "k8s.io/kubernetes 1.36.1, plugin/pkg/admission/priority: only one default can exist.",
    ),
)
def priority_below_scale_up(priority: PriorityClass, _: Parameters, inventory: Inventory) -> Outcome:
    """A PriorityClass whose pods never trigger a scale-up, or a harmful default class for pods that name none.

    Kubernetes refuses a second default. A default above all other classes reverses their order. Pods with a value below the cutoff wait
    forever.
    """
    if not is_of_pods(priority):
        return NOT_APPLICABLE
    by_default, value, below = priority.fields.at("globalDefault").equals("true"), value_of(priority), below_scale_up(priority, inventory)
    if below is True:
        all_pods = ", and pods without a class get it" if by_default is True else ""
        return fails(
            f"value is {value}{all_pods}: below {SCALE_UP_CUT_OFF} the cluster autoscaler adds no node for a pod",
            f"set it to {SCALE_UP_CUT_OFF} or more; 0 or more keeps default pods from taking its nodes",
            "value",
        )
    others = [each for each in defaults(inventory) if each.identity != priority.identity]
    if by_default is True and others:
        other = others[0].identity.name
        return fails(
            f"globalDefault is true here and in {other}, but Kubernetes allows only one default", "keep one of them", "globalDefault"
        )
    ranked = [value_of(each) for each in inventory.of(PriorityClass) if is_of_pods(each) and each.identity != priority.identity]
    if by_default is True and value is not UNKNOWN and ranked and all(each is not UNKNOWN and each < value for each in ranked):
        return fails(
            f"globalDefault is true, and value {value} is above every other class: pods without a class outrank all others",
            "remove globalDefault, or set it on the class that pods without a class should have",
            "globalDefault",
        )
    if UNKNOWN in (by_default, value, below):
        return undecided("value, globalDefault, or which autoscaler adds nodes for its pods, is not known")
    return PASSES
