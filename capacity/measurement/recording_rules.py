"""GPUs allocated, used and idle by team, project, workload type, environment and capacity type: what Prometheus records for dashboards.

Series are asked for as the report asks for them (capacity/chargeback/queries.py), capacity types are read off the same labels, a part of a
GPU counts as much, and owners are looked up in the same order, so that a dashboard and a bill agree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.chargeback.nodes import UNKNOWN
from capacity.chargeback.owners import CENTRAL, NONE
from capacity.chargeback.queries import queries
from capacity.measurement.gpu_unit_rules import NODE_GPUS, gpu_unit_rules
from capacity.measurement.node_rules import NODE, node_rule
from capacity.measurement.pod_rules import DIMENSIONS, POD_ALLOCATED, POD_BUSY, POD_USED, pod_rules
from capacity.measurement.promql_text import Scope, first_of
from capacity.measurement.rule_group import RuleGroup, rules_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from capacity.measurement.rule_group import RecordingRule

GROUP = "flexspot-gpus"

INTERVAL_SECONDS = 60
"""The report's own step."""

ALLOCATED = "flexspot:gpus_allocated:sum"
"""GPUs that pods have."""

USED = "flexspot:gpus_used:sum"
"""How many of them were busy; nothing of those whose activity nobody measures."""

MEASURED = "flexspot:gpus_measured:sum"
"""How many of them have their activity measured: what is used is a part of these."""

IDLE = "flexspot:gpus_idle:sum"
"""GPUs that no pod has; with those allocated, all there are. Their team is that of the node, or else its owner, or else (central)."""


def rule_groups(scope: Mapping[str, str] | None = None) -> tuple[RuleGroup, ...]:
    """The rules. `scope` are labels that every series has to have and every recorded one gets, such as {"cluster": "prod"}; default: none.

    All are in one group, because each needs what the ones before it recorded.
    """
    return (RuleGroup(GROUP, INTERVAL_SECONDS, tuple(_rules(Scope(scope or {})))),)


def rules_yaml(scope: Mapping[str, str] | None = None) -> str:
    """The rules as a file for Prometheus' `rule_files`."""
    return rules_file(rule_groups(scope))


def _rules(scope: Scope) -> Iterator[RecordingRule]:
    asked = {each.question: each.expression for each in queries(scope.matcher)}
    yield node_rule(asked, scope)
    yield from gpu_unit_rules(asked, scope)
    yield from pod_rules(asked, scope)
    by = ", ".join(DIMENSIONS)
    allocated, used = scope.recorded(POD_ALLOCATED), scope.recorded(POD_USED)
    yield scope.rule(ALLOCATED, f"sum by ({by}) ({allocated})")
    yield scope.rule(USED, f"sum by ({by}) ({used})")
    yield scope.rule(MEASURED, f"sum by ({by}) ({allocated} and on (namespace, pod) {scope.recorded(POD_BUSY)})")
    yield scope.rule(IDLE, f"sum by (team, environment, capacity_type) ({_idle(scope)})", project=NONE, workload_type=NONE)


def _idle(scope: Scope) -> str:
    """What nodes have and pods do not, with whose the nodes are. A pod can be seen for longer than its node."""
    gpus, node = scope.recorded(NODE_GPUS), scope.recorded(NODE)
    had = f"sum by (node) ({scope.recorded(POD_ALLOCATED)}) or on (node) 0 * {gpus}"
    known = f"{node} or on (node) group by (node) ({gpus})"
    expression = f"clamp_min({gpus} - on (node) ({had}), 0) * on (node) group_left (capacity_type, environment, owner) ({known})"
    for label, source, otherwise in (
        ("team", "owner", CENTRAL),
        ("environment", "environment", NONE),
        ("capacity_type", "capacity_type", UNKNOWN),
    ):
        expression = first_of(expression, label, [source], otherwise)
    return expression
