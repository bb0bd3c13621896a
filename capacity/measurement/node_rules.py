"""How a node was bought and whose it is, as one recorded series for each node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.chargeback.label_names import label_of
from capacity.chargeback.nodes import CAPACITY_MARKS, UNKNOWN
from capacity.chargeback.queries import Question
from capacity.measurement.promql_text import first_of, given, quoted, single
from capacity.node_labels import ENVIRONMENT_LABEL, INSTANCE_TYPE_LABEL, OWNER_LABEL, TEAM_LABEL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from capacity.measurement.promql_text import Scope
    from capacity.measurement.rule_group import RecordingRule

NODE = "flexspot_node:bought_as:max"
"""1, by node, machine, capacity_type, environment and owner: the team or else the owner that the node is labelled with."""

_COPIED = {"machine": INSTANCE_TYPE_LABEL, "environment": ENVIRONMENT_LABEL}


def node_rule(asked: Mapping[Question, str], scope: Scope) -> RecordingRule:
    """The rule."""
    node = single(given(asked[Question.NODE_LABELS], "node"), "node")
    node = f'label_replace({node}, "capacity_type", {quoted(UNKNOWN)}, "node", ".*")'
    # The last that is written counts, so the first of the marks is written last.
    for mark in reversed(CAPACITY_MARKS):
        value = ".+" if mark.value is None else mark.value
        node = f'label_replace({node}, "capacity_type", {quoted(mark.capacity_type)}, "{label_of(mark.label)}", {quoted(value)})'
    for label, key in _COPIED.items():
        node = f'label_replace({node}, "{label}", "$1", "{label_of(key)}", "(.+)")'
    node = first_of(node, "owner", map(label_of, (TEAM_LABEL, OWNER_LABEL)), otherwise="")
    return scope.rule(NODE, f"max by (node, machine, capacity_type, environment, owner) ({node})")
