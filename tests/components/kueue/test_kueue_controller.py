"""KueueController: its chart and values, and clusters that already have Kueue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from flexspot.capacity.plan.kueue_configuration import ONE_BOOT, kueue_configuration
from flexspot.components.kueue.controller import KueueController
from flexspot.lab.tools.build import family_named

if TYPE_CHECKING:
    from collections.abc import Callable

    from component_types import Outputs, Refusal, Register

    from flexspot.components.kueue.controller import KueueControllerArgs

RELEASE = "kubernetes:helm.sh/v3:Release"


@pytest.fixture
def release(register: Register) -> Callable[..., dict[str, Any]]:
    """Return the inputs of the release that KueueController creates from some arguments."""

    def run(**args: Any) -> dict[str, Any]:
        arguments: KueueControllerArgs = {**args}  # pyrefly: ignore[bad-unpacking] -- a test sets any of them
        [inputs] = register(lambda: KueueController("kueue", arguments)).of(RELEASE)
        return inputs

    return run


@pytest.fixture
def configuration(release: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Return the configuration in the release's values."""

    def run(**args: Any) -> dict[str, Any]:
        return yaml.safe_load(release(**args)["values"]["managerConfig"]["controllerManagerConfigYaml"])

    return run


def test_the_released_chart_and_image_are_installed_with_two_replicas_of_which_one_stays_available(
    release: Callable[..., dict[str, Any]],
) -> None:
    inputs = release()

    assert (inputs["chart"], inputs["version"]) == ("oci://registry.k8s.io/kueue/charts/kueue", "0.19.2")
    assert (inputs["name"], inputs["namespace"], inputs["createNamespace"]) == ("kueue", "kueue-system", True)
    assert (inputs["atomic"], inputs["timeout"]) == (True, 600), "what fails half-way is taken back"
    values = inputs["values"]["controllerManager"]
    # Not the moving image of the chart's source.
    assert values["manager"]["image"] == {"repository": "registry.k8s.io/kueue/kueue", "tag": "v0.19.2", "pullPolicy": "IfNotPresent"}
    assert (values["replicas"], values["podDisruptionBudget"]) == (2, {"enabled": True, "minAvailable": 1})
    [spread] = values["topologySpreadConstraints"]
    assert (spread["topologyKey"], spread["whenUnsatisfiable"]) == ("kubernetes.io/hostname", "ScheduleAnyway")
    alone = release(replicas=1)["values"]["controllerManager"]
    assert (alone["replicas"], alone["podDisruptionBudget"]["enabled"]) == (1, False), "it would keep its node forever"


def test_it_runs_anywhere_unless_selector_and_tolerations_are_set(release: Callable[..., dict[str, Any]]) -> None:
    tolerations = [{"key": "CriticalAddonsOnly", "operator": "Exists", "effect": "NoSchedule"}]

    placed = release(node_selector={"flexspot.dev/system": "true"}, tolerations=tolerations)["values"]["controllerManager"]

    assert (placed["nodeSelector"], placed["tolerations"]) == ({"flexspot.dev/system": "true"}, tolerations)
    assert not release()["values"]["controllerManager"].keys() & {"nodeSelector", "tolerations"}


def test_nothing_is_installed_if_the_cluster_has_kueue(register: Register, outputs: Outputs) -> None:
    registered = register(lambda: KueueController("kueue", {"existing": True}))

    assert [token for token, _, _ in registered.resources] == ["flexspot:index:KueueController"]
    assert outputs(lambda: KueueController("kueue", {"existing": True})) == {"version": "0.19.2"}


@pytest.mark.parametrize(
    "args,problem",
    [
        ({"replicas": 0}, "replicas (is 0): should be at least 1"),
        (
            {"pods_ready": {"timeout_seconds": 59, "recovery_seconds": 60, "requeues": 0}},
            "pods_ready.timeout_seconds (is 59): no node boots",
        ),
        (
            {"pods_ready": {"timeout_seconds": 60, "recovery_seconds": 0, "requeues": 0}},
            "pods_ready.recovery_seconds (is 0): no node boots",
        ),
        (
            {"pods_ready": {"timeout_seconds": 60, "recovery_seconds": 60, "requeues": -1}},
            "pods_ready.requeues (is -1): must be at least 0; use 0",
        ),
    ],
)
def test_invalid_arguments_are_refused_before_anything_is_registered(args: Any, problem: str, refusal: Refusal) -> None:
    assert problem in refusal(KueueController, "kueue", args)


def test_the_version_is_the_labs(release: Callable[..., dict[str, Any]]) -> None:
    assert family_named("kueue").version.removeprefix("v") == release()["version"]


def test_the_default_configuration_is_the_labs(
    configuration: Callable[..., dict[str, Any]],
) -> None:
    assert configuration() == kueue_configuration(ONE_BOOT)


def test_the_time_to_boot_can_be_set(configuration: Callable[..., dict[str, Any]]) -> None:
    times = {"timeout_seconds": 7200, "recovery_seconds": 600, "requeues": 2}

    written = configuration(pods_ready=times)

    waits = written["waitForPodsReady"]
    assert (waits["timeout"], waits["recoveryTimeout"], waits["requeuingStrategy"]["backoffLimitCount"]) == ("7200s", "600s", 2)
