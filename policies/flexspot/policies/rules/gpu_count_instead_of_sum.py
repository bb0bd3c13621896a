"""An alert or a panel that counts containers where it means GPUs."""

from collections.abc import Iterator

from flexspot.capacity.catalog.accelerators import SERIES_VALUES
from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable
from flexspot.policies.inventory.objects import QueryView, tree_of
from flexspot.policies.judging import Level, Parameters, Rule
from flexspot.policies.metrics import COMPARISONS, Aggregation, Binary, Literal, Node, Selector, amounts_by_container, walk


def judge(query: QueryView, _: Parameters) -> Outcome:
    """Whether there is one at all is a question that a count answers as well: `count(...) > 0` is let through."""
    tree = tree_of(query)
    if isinstance(tree, Outcome):
        return tree
    of_gpus = [node for node in walk(tree) if isinstance(node, Selector) and _is_of_gpus(node)]
    if not of_gpus:
        return not_applicable("it queries no series with the GPUs of containers")
    counted = next(_counted(tree), None)
    resource = next(each for each in SERIES_VALUES for node in of_gpus if _names(node, each))
    if counted is None:
        return PASSES
    return fails(
        f"{query.described} counts the series of {counted.name}: there is one for each container, and its value is the number of GPUs",
        f'use sum({counted.name}{{resource="{resource}"}}), for running pods: ... * on (namespace, pod) group_left () '
        '(kube_pod_status_phase{phase="Running"} == 1)',
        query.where,
    )


def _counted(node: Node) -> Iterator[Selector]:
    """The series that a count is taken of, not those that something is worked out from before."""
    if _asks_whether_any(node):
        return
    if isinstance(node, Aggregation) and node.operator == "count":
        yield from _entering(node.parts[0])
    for part in node.parts:
        yield from _counted(part)


def _entering(node: Node) -> Iterator[Selector]:
    if isinstance(node, Selector) and _is_of_gpus(node):
        yield node
    elif not isinstance(node, Aggregation):
        for part in node.parts:
            yield from _entering(part)


def _asks_whether_any(node: Node) -> bool:
    if not isinstance(node, Binary) or node.operator not in COMPARISONS:
        return False
    return any(isinstance(part, Literal) and part.value in {0, 1} for part in node.parts)


def _is_of_gpus(selector: Selector) -> bool:
    return selector.name in amounts_by_container() and any(_names(selector, each) for each in SERIES_VALUES)


def _names(selector: Selector, resource: str) -> bool:
    of_resource = [each for each in selector.matchers if each.label == "resource" and each.operator in {"=", "=~"}]
    return any(resource in each.value for each in of_resource)


RULE = Rule(
    code="FLX063",
    severity=Severity.MEDIUM,
    level=Level.ADVISORY,
    judge=judge,
    why="A container with eight GPUs counts as one: allocation, idle share and cost are up to eight times too low.",
    remediation="Sum the values of the series, and exclude pods that have ended.",
    link="https://github.com/kubernetes/kube-state-metrics/blob/main/docs/metrics/workload/pod-metrics.md",
)
