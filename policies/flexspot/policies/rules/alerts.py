"""Rules about alerts and panels: valid PromQL, and series and labels that exist."""

from collections.abc import Iterator

from flexspot.capacity.catalog.accelerators import SERIES_VALUES
from flexspot.capacity.values.verdict import NOT_APPLICABLE, PASSES, Outcome, Severity, fails, undecided
from flexspot.policies.inventory.objects import Exporter, QueryView, tree_of
from flexspot.policies.inventory.views import Inventory
from flexspot.policies.judging import Level, Parameters, Rule
from flexspot.policies.metrics import (
    COMPARISONS,
    HISTOGRAM_SERIES,
    AbsentLabels,
    Aggregation,
    Binary,
    Call,
    Literal,
    Node,
    Selector,
    absent_labels,
    amounts_by_container,
    histograms,
    promql_problem,
    required_labels,
    walk,
)
from flexspot.policies.values.field import UNKNOWN, Tri


@Rule(
    code="FLX065",
    severity=Severity.HIGH,
    why="Prometheus rejects the whole rule file if it cannot parse one rule in it: the other alerts in the file are lost too.",
    remediation="Write the expression so that `promtool check rules` accepts it.",
    link="https://prometheus.io/docs/prometheus/latest/configuration/recording_rules/#syntax-checking-rules",
    sources=("https://prometheus.io/docs/prometheus/latest/querying/basics/",),
)
def alert_does_not_parse(query: QueryView, _: Parameters) -> Outcome:
    """An alert or recording rule whose expression is not valid PromQL.

    Not applicable to dashboard expressions with variables, which may be PromQL only with their values.
    """
    text = query.expression.text()
    if text is UNKNOWN:
        return undecided(f"{query.described} is not known yet")
    if not text:
        return NOT_APPLICABLE
    problem = promql_problem(text)
    if problem == "":
        return PASSES
    if query.templated:
        return NOT_APPLICABLE
    if problem is UNKNOWN:
        return undecided(f"{query.described} is too long to parse, or uses PromQL syntax that Flexspot does not know")
    return fails(f"{query.described} is not valid PromQL: {problem}", at=query.where)


@Rule(
    code="FLX061",
    severity=Severity.HIGH,
    why="The expression never finds a series: the alert never fires and the panel stays empty, and neither says why.",
    remediation="Query the histogram's _bucket series with histogram_quantile, or use _sum and _count.",
    link="https://prometheus.io/docs/practices/histograms/",
    sources=(
        "kubernetes-sigs/kueue v0.19.2 and kubernetes-sigs/karpenter v1.14.1: which of their metrics are histograms.",
        "Kueue observes its waiting times when it admits: a job that still waits is in none of them.",
    ),
)
def alert_on_bare_histogram(query: QueryView, _: Parameters) -> Outcome:
    """An alert or a panel that queries a histogram by its bare name, for which no series exists.

    Within histogram_quantile and similar functions a bare name is a native histogram, which must be scraped on purpose.
    """
    tree = tree_of(query)
    if isinstance(tree, Outcome):
        return tree
    names = [node.name for node in walk(tree) if isinstance(node, Selector)]
    bare = [name for name in _outside_of_native(tree) if name in histograms()]
    if bare:
        name = bare[0]
        return fails(
            f"{query.described} queries {name}, a histogram: it has the series _bucket, _sum and _count, and none under its bare name",
            f"write histogram_quantile(0.9, sum by (le) (rate({name}_bucket[30m]))); it does not count work that is still waiting",
            query.where,
        )
    families = {name.removesuffix(suffix) for name in names for suffix in ("", *HISTOGRAM_SERIES)}
    return PASSES if families & histograms() else NOT_APPLICABLE


def _outside_of_native(node: Node) -> list[str]:
    if isinstance(node, Call) and node.function.startswith("histogram_"):
        return []
    own = [node.name] if isinstance(node, Selector) else []
    return [*own, *(name for part in node.parts for name in _outside_of_native(part))]


@Rule(
    code="FLX062",
    severity=Severity.HIGH,
    why="Selecting or matching by a missing label finds nothing, and grouping by it adds everything up: the alert "
    "never fires or names no owner.",
    remediation="Have the exporter or its scrape configuration add the label, or use one that the series have.",
    link="https://github.com/kubernetes/kube-state-metrics/blob/main/docs/developer/cli-arguments.md",
    sources=(
        "https://github.com/NVIDIA/dcgm-exporter/issues/78",
        "https://prometheus.io/docs/prometheus/latest/configuration/configuration/#scrape_config (honor_labels)",
    ),
)
def alert_on_absent_label(query: QueryView, _: Parameters, inventory: Inventory) -> Outcome:
    """An alert or a panel that uses a label that its series do not have.

    A label is missing if the exporter of the series does not add it. The exporter must be in the input.
    """
    tree = tree_of(query)
    if isinstance(tree, Outcome):
        return tree
    names = {node.name for node in walk(tree) if isinstance(node, Selector)}
    if not any(each.speaks_of(name) for each in absent_labels() for name in names):
        return NOT_APPLICABLE
    open_question, used = "", required_labels(tree)
    for series, label in used:
        absent = next((each for each in absent_labels() if each.covers(series, label)), None)
        # An expression that uses both names finds the label under either.
        either = absent is not None and absent.of_exporter and (series, f"exported_{label}") in used
        missing = _missing(absent, series, label, inventory) if absent and not either else False
        if absent and missing is True:
            says = "describes the exporter itself" if absent.of_exporter else "no series has"
            return fails(
                f"{query.described} uses the label {label} of {series}, which {says}: {absent.exporter} is not configured to add it",
                absent.instead,
                query.where,
            )
        if absent and missing is UNKNOWN:
            open_question = (
                f"whether {series} has the label {label} is not known: the configuration of {absent.exporter} is not fully known"
            )
    return undecided(f"{query.described}: {open_question}") if open_question else PASSES


def _missing(absent: AbsentLabels, series: str, label: str, inventory: Inventory) -> Tri:
    gathering = [each for each in inventory.of(Exporter) if each.program == absent.exporter]
    if any(each.gives(series, label) for each in gathering):
        return False
    if not all(each.complete for each in gathering):
        return UNKNOWN
    return True if gathering or inventory.closed else UNKNOWN


@Rule(
    code="FLX063",
    severity=Severity.MEDIUM,
    level=Level.ADVISORY,
    why="A container with eight GPUs counts as one: allocation, idle share and cost are up to eight times too low.",
    remediation="Sum the values of the series, and exclude pods that have ended.",
    link="https://github.com/kubernetes/kube-state-metrics/blob/main/docs/metrics/workload/pod-metrics.md",
)
def gpu_count_instead_of_sum(query: QueryView, _: Parameters) -> Outcome:
    """An alert or a panel that counts containers where it means GPUs.

    `count(...) > 0` passes, because a count does answer whether there are any GPUs.
    """
    tree = tree_of(query)
    if isinstance(tree, Outcome):
        return tree
    of_gpus = [node for node in walk(tree) if isinstance(node, Selector) and _is_of_gpus(node)]
    if not of_gpus:
        return NOT_APPLICABLE
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
    """Yield the series that a count aggregates directly, not those in an inner calculation."""
    if _tests_for_any(node):
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


def _tests_for_any(node: Node) -> bool:
    if not isinstance(node, Binary) or node.operator not in COMPARISONS:
        return False
    return any(isinstance(part, Literal) and part.value in {0, 1} for part in node.parts)


def _is_of_gpus(selector: Selector) -> bool:
    return selector.name in amounts_by_container() and any(_names(selector, each) for each in SERIES_VALUES)


def _names(selector: Selector, resource: str) -> bool:
    of_resource = [each for each in selector.matchers if each.label == "resource" and each.operator in {"=", "=~"}]
    return any(resource in each.value for each in of_resource)
