"""AWS's Node Termination Handler, as its chart's release or as the chart renders it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policies.field import Field
from policies.objects import TerminationHandler
from policies.unknown import UNKNOWN, Tri, all_of, any_of, negated

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from policies.reading.source import Source

_NAME = "aws-node-termination-handler"
_SELECTORS = ("daemonsetNodeSelector", "linuxNodeSelector", "nodeSelector")
"""In the chart the first of these that is written counts."""

_VARIABLES = {
    "ENABLE_SQS_TERMINATION_DRAINING": "enableSqsTerminationDraining",
    "ENABLE_SPOT_INTERRUPTION_DRAINING": "enableSpotInterruptionDraining",
    "ENABLE_REBALANCE_DRAINING": "enableRebalanceDraining",
    "CHECK_TAG_BEFORE_DRAINING": "checkTagBeforeDraining",
    "CHECK_ASG_TAG_BEFORE_DRAINING": "checkASGTagBeforeDraining",
}
"""The program's settings by the names that the chart has for them."""


def read(source: Source) -> Iterator[TerminationHandler]:
    """The handler that a chart's release, a DaemonSet or a Deployment installs."""
    kind = (source.family, source.kind)
    if kind == ("helm.sh", "Release"):
        yield from _release(source)
    elif kind in {("apps", "DaemonSet"), ("apps", "Deployment")}:
        yield from _workload(source)


def _release(source: Source) -> Iterator[TerminationHandler]:
    chart = source.fields.at("chart").text()
    if not isinstance(chart, str) or chart.rstrip("/").rpartition("/")[2] != _NAME:
        return
    values = source.fields.at("values")
    complete = source.fields.at("valueYamlFiles").absent
    switches = {name: values.at(name) for name in _VARIABLES.values()}
    selectors = [values.at(name) for name in _SELECTORS]
    selector = next((each for each in selectors if not each.absent), Field(None if complete else UNKNOWN))
    yield _handler(source, switches if complete else _or_elsewhere(switches), selector)


def _workload(source: Source) -> Iterator[TerminationHandler]:
    pod = source.fields.at("spec", "template", "spec")
    for container in pod.at("containers").parts().fields:
        image = container.at("image").text()
        if not isinstance(image, str) or f"/{_NAME}" not in image:
            continue
        variables = container.at("env").parts()
        # A variable that is taken from elsewhere (valueFrom) has no value here.
        written = {
            _VARIABLES[name]: each.at("value") if each.at("valueFrom").absent else Field(UNKNOWN)
            for each in variables.fields
            if (name := str(each.at("name").text())) in _VARIABLES
        }
        switches = {name: written.get(name, Field(None)) for name in _VARIABLES.values()}
        complete = variables.complete and container.at("envFrom").absent
        yield _handler(source, switches if complete else _or_elsewhere(switches), pod.at("nodeSelector"))


def _or_elsewhere(switches: Mapping[str, Field]) -> Mapping[str, Field]:
    """What is not written here may be written where nobody looks."""
    return {name: Field(UNKNOWN) if each.absent else each for name, each in switches.items()}


def _handler(source: Source, switches: Mapping[str, Field], selector: Field) -> TerminationHandler:
    return TerminationHandler(source.identity, True, source.fields.partial, _drains(switches), selector)


def _drains(switches: Mapping[str, Field]) -> Tri:
    """From a queue it drains what carries its tag, unless told not to look; from the metadata service every node that it runs on.

    Spot interruptions are drained unless told otherwise, rebalance recommendations only if told to.
    Source: values.yaml and templates of config/helm/aws-node-termination-handler.
    """
    queue = switches["enableSqsTerminationDraining"].equals("true")
    untagged = any_of([switches["checkTagBeforeDraining"].equals("false"), switches["checkASGTagBeforeDraining"].equals("false")])
    on_node = any_of(
        [negated(switches["enableSpotInterruptionDraining"].equals("false")), switches["enableRebalanceDraining"].equals("true")]
    )
    return any_of([all_of([queue, untagged]), all_of([negated(queue), on_node])])
