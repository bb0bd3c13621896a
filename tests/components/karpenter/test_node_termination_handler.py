"""NodeTerminationHandler: for node groups without Karpenter, and never beside it."""

from __future__ import annotations

from typing import Any

import pytest
from karpenter_args import RELEASE, declared, parents_of, refusal
from pulumi.provider.experimental.analyzer import Analyzer

from components.karpenter.interruption_queue import NodeTerminationHandler, NodeTerminationHandlerArgs


def args(**changes: Any) -> NodeTerminationHandlerArgs:
    arguments: NodeTerminationHandlerArgs = {"karpenter_queue": None}
    arguments.update(changes)  # pyrefly: ignore[no-matching-overload] -- what is wrong on purpose, too
    return arguments


def release(**changes: Any) -> dict[str, Any]:
    [inputs] = declared(lambda: NodeTerminationHandler("handler", args(**changes)))[0].of(RELEASE).values()
    return inputs


def test_the_released_chart_is_installed_at_a_pinned_version_as_a_release_that_fails_whole() -> None:
    inputs = release()

    assert (inputs["chart"], inputs["version"]) == ("oci://public.ecr.aws/aws-ec2/helm/aws-node-termination-handler", "0.27.1")
    assert (inputs["name"], inputs["namespace"]) == ("aws-node-termination-handler", "kube-system")
    assert (inputs["atomic"], inputs["timeout"]) == (True, 600)


def test_it_watches_the_metadata_service_of_spot_nodes_whatever_their_taints_and_needs_no_queue() -> None:
    values = release()["values"]

    assert values == {
        "targetNodeOs": "linux",
        "enableSqsTerminationDraining": False,
        "enableSpotInterruptionDraining": True,
        "enableScheduledEventDraining": True,
        "enableRebalanceMonitoring": False,
        "enableRebalanceDraining": False,
        "useHostNetwork": True,
        "rbac": {"pspEnabled": False},
        "nodeSelector": {"eks.amazonaws.com/capacityType": "SPOT"},
        "tolerations": [{"operator": "Exists"}],
    }


def test_its_nodes_and_what_a_recommendation_does_are_the_callers() -> None:
    values = release(node_selector={"lifecycle": "spot"}, drain_on_rebalance=True)["values"]

    assert values["nodeSelector"] == {"lifecycle": "spot"}
    assert values["enableRebalanceDraining"] is True


def test_its_output_is_the_charts_version() -> None:
    _, outputs = declared(lambda: NodeTerminationHandler("handler", args()))

    assert outputs == {"version": "0.27.1"}


def test_its_release_is_its_own_and_named_after_it() -> None:
    parents, made = parents_of(lambda opts: NodeTerminationHandler("handler", args(), opts))

    assert parents == {"handler": None, "handler-release": made}


@pytest.mark.parametrize(
    "change,problem",
    [
        (
            {"karpenter_queue": "training"},
            "termination-handler-beside-karpenter: NodeTerminationHandler handler has karpenter_queue 'training'; it must be None",
        ),
        ({"karpenter_queue": ""}, "termination-handler-beside-karpenter: NodeTerminationHandler handler has karpenter_queue ''"),
        ({"node_selector": {}}, "NodeTerminationHandler handler: node_selector is {}; it must have at least one label"),
    ],
)
def test_what_would_drain_nodes_twice_or_watch_all_is_refused_before_anything_is_registered(change: dict[str, Any], problem: str) -> None:
    said, resources = refusal(lambda: NodeTerminationHandler("handler", args(**change)))

    assert said.startswith(problem)
    assert resources == []


def test_pulumis_component_host_knows_which_arguments_are_optional() -> None:
    inputs = Analyzer("flexspot").analyze([NodeTerminationHandler])["component_definitions"]["NodeTerminationHandler"].inputs

    assert {name for name, each in inputs.items() if each.optional} == {"karpenterQueue", "nodeSelector", "drainOnRebalance"}
