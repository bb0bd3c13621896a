"""An alert or a panel that queries a histogram by its bare name, for which no series exists."""

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable
from flexspot.policies.inventory.objects import QueryView, tree_of
from flexspot.policies.judging import Parameters, Rule
from flexspot.policies.metrics import HISTOGRAM_SERIES, Call, Node, Selector, histograms, walk


def judge(query: QueryView, _: Parameters) -> Outcome:
    """Within histogram_quantile and its like a bare name is a native histogram, which somebody has chosen to scrape."""
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
    return PASSES if families & histograms() else not_applicable("it queries no histogram that Flexspot knows")


def _outside_of_native(node: Node) -> list[str]:
    if isinstance(node, Call) and node.function.startswith("histogram_"):
        return []
    own = [node.name] if isinstance(node, Selector) else []
    return [*own, *(name for part in node.parts for name in _outside_of_native(part))]


RULE = Rule(
    code="FLX061",
    severity=Severity.HIGH,
    judge=judge,
    why="The expression never finds a series: the alert never fires and the panel stays empty, and neither says why.",
    remediation="Query the histogram's _bucket series with histogram_quantile, or use _sum and _count.",
    link="https://prometheus.io/docs/practices/histograms/",
    sources=(
        "kubernetes-sigs/kueue v0.19.0 and kubernetes-sigs/karpenter v1.14.1: which of their metrics are histograms.",
        "Kueue observes its waiting times when it admits: a job that still waits is in none of them.",
    ),
)
