"""An alert or a panel that uses a label that its series do not have."""

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.objects import Exporter, QueryView, tree_of
from flexspot.policies.inventory.views import Inventory
from flexspot.policies.judging import Parameters, Rule
from flexspot.policies.metrics import AbsentLabels, Selector, absent_labels, labels_asked, walk
from flexspot.policies.values.field import UNKNOWN, Tri


def judge(query: QueryView, _: Parameters, inventory: Inventory) -> Outcome:
    """A label is missing if what gathers the series, which must be among what was given, does not add it."""
    tree = tree_of(query)
    if isinstance(tree, Outcome):
        return tree
    names = {node.name for node in walk(tree) if isinstance(node, Selector)}
    if not any(each.speaks_of(name) for each in absent_labels() for name in names):
        return not_applicable("it queries no series that is known to lack a label")
    open_question, asked = "", labels_asked(tree)
    for series, label in asked:
        absent = next((each for each in absent_labels() if each.covers(series, label)), None)
        # Asked for both names, an expression finds the label wherever it is.
        either = absent is not None and absent.of_exporter and (series, f"exported_{label}") in asked
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


RULE = Rule(
    code="FLX062",
    severity=Severity.HIGH,
    judge_among=judge,
    why=(
        "Selecting or matching by a missing label finds nothing, and grouping by it adds everything up: the alert "
        "never fires or names no owner."
    ),
    remediation="Have the exporter or its scrape configuration add the label, or use one that the series have.",
    link="https://github.com/kubernetes/kube-state-metrics/blob/main/docs/developer/cli-arguments.md",
    sources=(
        "https://github.com/NVIDIA/dcgm-exporter/issues/78",
        "https://prometheus.io/docs/prometheus/latest/configuration/configuration/#scrape_config (honor_labels)",
    ),
)
