"""An alert or recording rule whose expression is not valid PromQL."""

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.objects import QueryView
from flexspot.policies.judging import Parameters, Rule
from flexspot.policies.metrics import promql_problem
from flexspot.policies.values.field import UNKNOWN


def judge(query: QueryView, _: Parameters) -> Outcome:
    """A dashboard's expression may be PromQL only when its variables are filled in."""
    text = query.expression.text()
    if text is UNKNOWN:
        return undecided(f"{query.described} is not known yet")
    if not text:
        return not_applicable("it has no expression")
    problem = promql_problem(text)
    if problem == "":
        return PASSES
    if query.templated:
        return not_applicable("it may be valid PromQL once its variables are filled in")
    if problem is UNKNOWN:
        return undecided(f"{query.described} is too long to parse, or uses PromQL syntax that Flexspot does not know")
    return fails(f"{query.described} is not valid PromQL: {problem}", at=query.where)


RULE = Rule(
    code="FLX065",
    severity=Severity.HIGH,
    judge=judge,
    why="Prometheus rejects the whole rule file if it cannot parse one rule in it: the other alerts in the file are lost too.",
    remediation="Write the expression so that `promtool check rules` accepts it.",
    link="https://prometheus.io/docs/prometheus/latest/configuration/recording_rules/#syntax-checking-rules",
    sources=("https://prometheus.io/docs/prometheus/latest/querying/basics/",),
)
