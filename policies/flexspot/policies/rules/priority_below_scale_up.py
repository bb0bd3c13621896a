"""A PriorityClass whose pods never trigger a scale-up, or a harmful default class for pods that name none."""

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.objects import PriorityClass
from flexspot.policies.inventory.views import Inventory
from flexspot.policies.judging import Level, Parameters, Rule
from flexspot.policies.pods.placement import SCALE_UP_CUT_OFF, below_scale_up, defaults, is_of_pods, value_of
from flexspot.policies.values.field import UNKNOWN


def judge(priority: PriorityClass, _: Parameters, inventory: Inventory) -> Outcome:
    """One default too many is refused; a default above all others turns the order round; a value below the line waits for ever."""
    if not is_of_pods(priority):
        return not_applicable("not a PriorityClass for pods, or one of Kubernetes' own")
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


RULE = Rule(
    code="FLX048",
    severity=Severity.MEDIUM,
    level=Level.ADVISORY,
    judge_among=judge,
    why="Pods below the cutoff run only on spare nodes: on a pool that scales from zero they wait forever, and nothing says why.",
    remediation="Give work that should get nodes a value of 0 or more; order it with lower and higher values above that.",
    link="https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md",
    sources=(
        "https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/#priorityclass",
        "k8s.io/kubernetes 1.36.1, plugin/pkg/admission/priority: only one default can exist.",
    ),
)
