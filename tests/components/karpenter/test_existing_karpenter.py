"""ExistingKarpenter: it is read, never created, and a Karpenter that does not suit the platform's pools is refused with a remedy."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest
from component_outputs import ReadCloud, outputs_of

from flexspot.components.karpenter.controller import DEFINITION, DEPLOYMENT, NODE_CLASSES, ExistingKarpenter, ExistingKarpenterArgs

THERE = "kube-system/karpenter"

GATES = "ReservedCapacity=true,SpotToSpotConsolidation=false,NodeRepair=true,NodeOverlay=false,StaticCapacity=false,CapacityBuffer=false"

ENVIRONMENT = {
    "KUBERNETES_MIN_VERSION": "1.19.0-0",
    "FEATURE_GATES": GATES,
    "CLUSTER_NAME": "ml",
    "INTERRUPTION_QUEUE": "Karpenter-ml",
}
"""Environment as the chart writes it (charts/karpenter/templates/deployment.yaml of v1.14.1, read 2026-11-26)."""

NEW_FIELDS = ["capacityReservationSelectorTerms", "networkInterfaces", "placementGroupSelector"]


def deployment(version: str | None = "1.14.1", environment: dict[str, str] | None = None, **changes: str | None) -> dict[str, Any]:
    """Return the Deployment as the chart writes it, with changed variables. None removes one."""
    values = {**(ENVIRONMENT if environment is None else environment), **changes}
    variables: list[dict[str, Any]] = [{"name": name, "value": value} for name, value in values.items() if value is not None]
    namespace = {"name": "SYSTEM_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}
    containers = [{"name": "proxy"}, {"name": "controller", "env": [*variables, namespace]}]
    labels = {"app.kubernetes.io/name": "karpenter"} | ({} if version is None else {"app.kubernetes.io/version": version})
    return {"metadata": {"name": "karpenter", "labels": labels}, "spec": {"template": {"spec": {"containers": containers}}}}


def definition(*without: str, served: bool = True) -> dict[str, Any]:
    """Return the definition of node classes, reduced to the fields that are checked."""
    fields = {each: {} for each in ("role", "tags", *NEW_FIELDS) if each not in without}
    schema = {"openAPIV3Schema": {"properties": {"spec": {"properties": fields}}}}
    return {"metadata": {"name": NODE_CLASSES}, "spec": {"versions": [{"name": "v1", "served": served, "schema": schema}]}}


def arguments(**changes: Any) -> ExistingKarpenterArgs:
    known = {"cluster": "ml", "kubernetes_version": "1.35", "deployment": THERE, "reserved": True, "fields": NEW_FIELDS}
    return known | changes  # pyrefly: ignore[bad-return] -- a test's own


def seen(controller: dict[str, Any] | None, node_classes: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    cloud = cloud_with(controller, node_classes)
    return outputs_of(cloud, lambda: ExistingKarpenter("karpenter", arguments(**changes)), preview=cloud.is_preview)


def cloud_with(controller: dict[str, Any] | None, node_classes: dict[str, Any] | None = None) -> ReadCloud:
    answers = {THERE: controller, NODE_CLASSES: node_classes or definition()}
    return ReadCloud(None if controller is None else lambda identity: answers[identity] or {})


def test_both_are_read_by_their_names_and_only_the_component_is_registered() -> None:
    cloud = cloud_with(deployment())

    outputs_of(cloud, lambda: ExistingKarpenter("karpenter", arguments()))

    assert sorted(cloud.read) == sorted([(f"kubernetes:{DEPLOYMENT}", THERE), (f"kubernetes:{DEFINITION}", NODE_CLASSES)])
    assert cloud.made == ["flexspot:index:ExistingKarpenter"]


@pytest.mark.parametrize(
    "controller,node_classes,message",
    [
        (deployment("1.8.6"), definition(), r"is 1\.8\.6; its node pools and classes need 1\.9 or newer"),
        (deployment("0.37.5"), definition(), r"is 0\.37\.5; its node pools and classes need 1\.9 or newer"),
        (deployment("1.12.0"), definition(), r"works with Kubernetes 1\.26 to 1\.35, and the cluster has 1\.36"),
        (deployment(CLUSTER_NAME="other"), definition(), "has the cluster's name other, not ml"),
        (deployment(INTERRUPTION_QUEUE=None), definition(), r"no interruption queue.*its owner sets settings\.interruptionQueue"),
        (deployment(FEATURE_GATES="ReservedCapacity=false,NodeRepair=true"), definition(), "gate ReservedCapacity off"),
        (deployment(), definition("networkInterfaces"), r"EC2NodeClass on ml lacks networkInterfaces.*karpenter-crd to 1\.14"),
        (deployment(), definition(served=False), "lacks capacityReservationSelectorTerms, networkInterfaces, placementGroupSelector"),
    ],
)
def test_an_unsuitable_karpenter_is_refused_with_a_remedy(controller: dict[str, Any], node_classes: dict[str, Any], message: str) -> None:
    with pytest.raises(pulumi.RunError, match=f"ExistingKarpenter karpenter: .*{message}"):
        seen(controller, node_classes, kubernetes_version="1.36")


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(pulumi.RunError) as refused:
        seen(deployment("1.8.6", INTERRUPTION_QUEUE=None), definition("networkInterfaces"))

    assert len(str(refused.value).splitlines()) == 3


@pytest.mark.parametrize(
    "controller",
    [
        pytest.param(deployment("1.15.1"), id="a minor version that is newer than what is known here"),
        pytest.param(deployment(version=None), id="a custom chart without the version"),
        pytest.param(deployment(environment={}), id="variables that come from elsewhere"),
    ],
)
def test_unknown_facts_are_accepted(controller: dict[str, Any]) -> None:
    assert seen(controller, kubernetes_version="1.36")["deployment"] == THERE


def test_fields_and_gates_that_no_pool_needs_are_not_required() -> None:
    off = deployment(FEATURE_GATES="ReservedCapacity=false")

    assert seen(off, definition(*NEW_FIELDS), reserved=False, fields=[])["deployment"] == THERE


def test_offline_nothing_is_refused() -> None:
    assert seen(None, kubernetes_version="")["known"] == {"deployment": True}


@pytest.mark.parametrize("written", ["karpenter", "/karpenter", "a/b/c", "kube-system/"])
def test_a_deployment_without_its_namespace_is_refused_before_anything_is_read(written: str) -> None:
    cloud = cloud_with(deployment())

    with pytest.raises(ValueError, match="must be NAMESPACE/NAME; write it in full, such as kube-system/karpenter"):
        outputs_of(cloud, lambda: ExistingKarpenter("karpenter", arguments(deployment=written)))

    assert (cloud.made, cloud.read) == ([], [])
