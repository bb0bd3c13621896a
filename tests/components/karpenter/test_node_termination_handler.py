"""NodeTerminationHandler: for node groups without Karpenter, and never together with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from karpenter_args import RELEASE, declared

from flexspot.components.karpenter.interruption_queue import NodeTerminationHandler, NodeTerminationHandlerArgs

if TYPE_CHECKING:
    from component_types import Refusal


def args(**changes: Any) -> NodeTerminationHandlerArgs:
    # pyrefly: ignore[bad-return] -- some arguments are invalid on purpose
    return {"karpenter_queue": None} | changes


def release(**changes: Any) -> dict[str, Any]:
    [inputs] = declared(lambda: NodeTerminationHandler("handler", args(**changes)))[0].of(RELEASE).values()
    return inputs


def test_the_released_chart_is_installed_at_a_pinned_version_as_an_atomic_release() -> None:
    inputs = release()

    assert (inputs["chart"], inputs["version"]) == ("oci://public.ecr.aws/aws-ec2/helm/aws-node-termination-handler", "0.27.1")
    assert (inputs["name"], inputs["namespace"]) == ("aws-node-termination-handler", "kube-system")
    assert (inputs["atomic"], inputs["timeout"]) == (True, 600)


def test_it_watches_the_metadata_service_of_spot_nodes_with_any_taints_and_needs_no_queue() -> None:
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


def test_its_nodes_and_its_reaction_to_a_recommendation_can_be_set() -> None:
    values = release(node_selector={"lifecycle": "spot"}, drain_on_rebalance=True)["values"]

    assert values["nodeSelector"] == {"lifecycle": "spot"}
    assert values["enableRebalanceDraining"] is True


@pytest.mark.parametrize(
    "change,problem",
    [
        ({"karpenter_queue": "training"}, "termination-handler-beside-karpenter: NodeTerminationHandler handler: karpenter_queue"),
        ({"karpenter_queue": ""}, "termination-handler-beside-karpenter: NodeTerminationHandler handler: karpenter_queue (is '')"),
        ({"node_selector": {}}, "node_selector (is {}): is empty, so the handler would run on all nodes"),
    ],
)
def test_arguments_that_would_drain_nodes_twice_or_watch_all_are_refused_before_anything_is_registered(
    change: dict[str, Any], problem: str, refusal: Refusal
) -> None:
    assert problem in refusal(NodeTerminationHandler, "handler", args(**change))
