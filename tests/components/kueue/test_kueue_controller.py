"""KueueController: which chart it installs, with which values, and when none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pulumi
import pytest
import yaml

from capacity.plan.kueue_configuration import ONE_BOOT, kueue_configuration
from components.kueue.controller import KueueController
from lab.tools.build import family_named

if TYPE_CHECKING:
    from components.kueue.controller import KueueControllerArgs

Register = Callable[[Callable[[], object]], Any]

RELEASE = "kubernetes:helm.sh/v3:Release"


@pytest.fixture
def release(register: Register) -> Callable[..., dict[str, Any]]:
    """The inputs of the release that KueueController makes of some arguments."""

    def run(**args: Any) -> dict[str, Any]:
        arguments: KueueControllerArgs = {**args}  # pyrefly: ignore[bad-unpacking] -- whichever of them a test sets
        [inputs] = register(lambda: KueueController("kueue", arguments)).of(RELEASE)
        return inputs

    return run


@pytest.fixture
def manager(release: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """The chart's values for the controller."""

    def run(**args: Any) -> dict[str, Any]:
        return release(**args)["values"]["controllerManager"]

    return run


@pytest.fixture
def configuration(release: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """The configuration that the release hands to Kueue."""

    def run(**args: Any) -> dict[str, Any]:
        return yaml.safe_load(release(**args)["values"]["managerConfig"]["controllerManagerConfigYaml"])

    return run


def test_the_released_chart_is_installed_at_a_pinned_version_in_kueues_own_namespace(release: Callable[..., dict[str, Any]]) -> None:
    inputs = release()

    assert inputs["chart"] == "oci://registry.k8s.io/kueue/charts/kueue"
    assert inputs["version"] == "0.19.0"
    assert (inputs["name"], inputs["namespace"], inputs["createNamespace"]) == ("kueue", "kueue-system", True)


def test_the_image_is_the_released_one_and_not_the_moving_one_of_the_charts_source(manager: Callable[..., dict[str, Any]]) -> None:
    image = manager()["manager"]["image"]

    assert image == {"repository": "registry.k8s.io/kueue/kueue", "tag": "v0.19.0", "pullPolicy": "IfNotPresent"}


def test_there_are_two_replicas_on_two_nodes_where_possible_of_which_one_is_always_kept(manager: Callable[..., dict[str, Any]]) -> None:
    values = manager()

    assert (values["replicas"], values["podDisruptionBudget"]) == (2, {"enabled": True, "minAvailable": 1})
    [spread] = values["topologySpreadConstraints"]
    assert (spread["topologyKey"], spread["whenUnsatisfiable"]) == ("kubernetes.io/hostname", "ScheduleAnyway")


def test_one_replica_has_no_budget_that_would_keep_its_node_for_ever(manager: Callable[..., dict[str, Any]]) -> None:
    values = manager(replicas=1)

    assert (values["replicas"], values["podDisruptionBudget"]["enabled"]) == (1, False)


def test_it_runs_anywhere_unless_told_where_and_past_which_taints(manager: Callable[..., dict[str, Any]]) -> None:
    tolerations = [{"key": "CriticalAddonsOnly", "operator": "Exists", "effect": "NoSchedule"}]

    told = manager(node_selector={"flexspot.dev/system": "true"}, tolerations=tolerations)

    assert (told["nodeSelector"], told["tolerations"]) == ({"flexspot.dev/system": "true"}, tolerations)
    assert not manager().keys() & {"nodeSelector", "tolerations"}


def test_where_the_cluster_has_its_kueue_nothing_is_installed(register: Register) -> None:
    versions: list[str] = []

    registered = register(lambda: KueueController("kueue", {"existing": True}).version.apply(versions.append))

    assert [token for token, _, _ in registered.resources] == ["flexspot:index:KueueController"]
    assert versions == ["0.19.0"]


@pytest.mark.parametrize(
    "args,problem",
    [
        ({"replicas": 0}, "replicas is 0; use 1 or more"),
        ({"frameworks": []}, "frameworks is empty"),
        ({"pods_ready": {"timeout_seconds": 59, "recovery_seconds": 60, "requeues": 0}}, "pods_ready.timeout_seconds is 59"),
        ({"pods_ready": {"timeout_seconds": 60, "recovery_seconds": 0, "requeues": 0}}, "pods_ready.recovery_seconds is 0"),
        ({"pods_ready": {"timeout_seconds": 60, "recovery_seconds": 60, "requeues": -1}}, "pods_ready.requeues is -1; use 0 for none"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_registered(args: Any, problem: str, register: Register) -> None:
    def declare() -> None:
        with pytest.raises(ValueError, match=f"KueueController kueue: {problem}"):
            KueueController("kueue", args)

    assert register(declare).resources == []


def test_a_release_that_fails_half_way_is_taken_back(release: Callable[..., dict[str, Any]]) -> None:
    inputs = release()

    assert (inputs["atomic"], inputs["timeout"]) == (True, 600)


def test_the_version_is_the_one_that_the_lab_rehearses_with(release: Callable[..., dict[str, Any]]) -> None:
    assert family_named("kueue").version.removeprefix("v") == release()["version"]


def test_the_charts_configuration_is_the_one_that_the_lab_rehearses_with_but_for_what_it_is_told(
    configuration: Callable[..., dict[str, Any]],
) -> None:
    assert configuration() == kueue_configuration(ONE_BOOT)


def test_kinds_of_work_and_the_time_to_boot_are_the_callers(configuration: Callable[..., dict[str, Any]]) -> None:
    times = {"timeout_seconds": 7200, "recovery_seconds": 600, "requeues": 2}

    written = configuration(frameworks=["batch/job", "pod"], pods_ready=times)

    assert written["integrations"]["frameworks"] == ["batch/job", "pod"]
    waits = written["waitForPodsReady"]
    assert (waits["timeout"], waits["recoveryTimeout"], waits["requeuingStrategy"]["backoffLimitCount"]) == ("7200s", "600s", 2)


def test_the_release_is_the_components_child_and_the_version_its_output(register: Register) -> None:
    parents: dict[str, pulumi.Resource | None] = {}
    made: list[KueueController] = []
    versions: list[str] = []

    def note(resource: pulumi.ResourceTransformationArgs) -> None:
        parents[resource.name] = resource.opts.parent

    def declare() -> None:
        made.append(KueueController("kueue", {}, pulumi.ResourceOptions(transformations=[note])))
        made[0].version.apply(versions.append)

    register(declare)

    assert parents == {"kueue": None, "kueue-release": made[0]}
    assert versions == ["0.19.0"]
