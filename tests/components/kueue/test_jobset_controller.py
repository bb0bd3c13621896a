"""JobSetController: its chart and values, compared with the chart's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml
from chart_values import unknown_values
from lab_fixtures import CHECKOUT

from flexspot.capacity.catalog.versions import Chart, shipped_versions
from flexspot.components.kueue.controller import JobSetController
from flexspot.lab.progress import Silence
from flexspot.lab.tools.build import ensure_tools, family_named

if TYPE_CHECKING:
    from collections.abc import Callable

    from component_types import Refusal, Register

    from flexspot.components.kueue.controller import JobSetControllerArgs

RELEASE = "kubernetes:helm.sh/v3:Release"


@pytest.fixture
def release(register: Register) -> Callable[..., dict[str, Any]]:
    """Return the inputs of the release that JobSetController creates from some arguments."""

    def run(**args: Any) -> dict[str, Any]:
        arguments: JobSetControllerArgs = {**args}  # pyrefly: ignore[bad-unpacking] -- a test sets any of them
        [inputs] = register(lambda: JobSetController("jobset", arguments)).of(RELEASE)
        return inputs

    return run


def test_the_released_chart_is_installed_at_a_pinned_version_in_a_separate_namespace(release: Callable[..., dict[str, Any]]) -> None:
    inputs = release()

    assert inputs["chart"] == "oci://registry.k8s.io/jobset/charts/jobset"
    assert (inputs["version"], inputs["name"], inputs["namespace"]) == ("0.12.0", "jobset", "jobset-system")
    assert (inputs["createNamespace"], inputs["atomic"]) == (True, True)
    image = inputs["values"]["image"]
    assert image == {"repository": "registry.k8s.io/jobset/jobset", "tag": "v0.12.0", "pullPolicy": "IfNotPresent"}


def test_it_is_the_jobset_version_of_the_pinned_kueue() -> None:
    """Kueue decodes objects that JobSet's controller serves. Each names the other's version in go.mod."""
    pins = (family_named("kueue").folder / "go.mod").read_text()

    assert f"sigs.k8s.io/jobset v{shipped_versions().chart(Chart.JOBSET).version} " in pins
    assert family_named("jobset").version == f"v{shipped_versions().chart(Chart.JOBSET).version}"


def test_sizes_and_placement_can_be_set_and_one_of_several_replicas_stays_available(release: Callable[..., dict[str, Any]]) -> None:
    tolerations = [{"key": "CriticalAddonsOnly", "operator": "Exists"}]
    made = release(replicas=3, cpu_milli=3000, memory_mib=512, node_selector={"flexspot.dev/system": "true"}, tolerations=tolerations)

    values = made["values"]["controller"]
    assert (values["replicas"], values["podDisruptionBudget"]) == (3, {"enabled": True, "minAvailable": 1})
    assert values["resources"] == {"requests": {"cpu": "3", "memory": "512Mi"}, "limits": {"cpu": "3", "memory": "512Mi"}}
    assert (values["nodeSelector"], values["tolerations"]) == ({"flexspot.dev/system": "true"}, tolerations)
    alone = release(replicas=1)["values"]["controller"]
    assert alone["podDisruptionBudget"]["enabled"] is False, "it would keep its node forever"
    assert not alone.keys() & {"nodeSelector", "tolerations"}


@pytest.mark.parametrize(
    "args,problem",
    [({"replicas": 0}, "replicas (is 0)"), ({"memory_mib": 1}, "memory_mib (is 1)"), ({"version": "main"}, "version (is 'main')")],
)
def test_invalid_arguments_are_refused_before_anything_is_registered(args: Any, problem: str, refusal: Refusal) -> None:
    assert problem in refusal(JobSetController, "jobset", args)


@pytest.mark.lab
@pytest.mark.nightly(tested_by="test_it_is_the_jobset_version_of_the_pinned_kueue")
def test_every_value_is_one_of_the_modules_chart(release: Callable[..., dict[str, Any]]) -> None:
    tools = ensure_tools(CHECKOUT / ".tools", Silence(), wanted=(family_named("jobset"),))
    files = {each.name: yaml.safe_load(each.read_text()) for each in tools.assets("jobset", "chart")}
    made = release(node_selector={"a": "b"}, tolerations=[{"key": "c", "operator": "Exists"}])

    assert files["Chart.yaml"]["version"] == made["version"]
    assert unknown_values(made["values"], files["values.yaml"]) == []
