"""Whole programs under the real engine with the policy pack: three mistakes that are stopped, and their corrected twins that pass."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pulumi_gcp as gcp
import pytest
from pulumi import automation
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.batch.v1 import Job, JobSpecArgs
from pulumi_kubernetes.core.v1 import ContainerArgs, PodSpecArgs, PodTemplateSpecArgs, ResourceRequirementsArgs

from lab.providers.offline import OfflineProvider
from lab.providers.serving import serve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lab.tools.build import Tools

pytestmark = pytest.mark.engine

PACK = Path(__file__).resolve().parents[2] / "policies" / "pack"

VERSIONS = {"gcp": "10.2.0", "kubernetes": "4.34.2"}


@pytest.fixture
def preview(tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[], None]], str]]:
    """Previews a program with offline providers and the pack; returns what the engine printed, whether it passed or not."""
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "home"))
    with ExitStack() as providers:
        ports = [f"{name}:{providers.enter_context(serve(OfflineProvider(name, version)))}" for name, version in VERSIONS.items()]

        def run(program: Callable[[], None]) -> str:
            options = automation.LocalWorkspaceOptions(
                work_dir=str(tmp_path),
                program=program,
                project_settings=automation.ProjectSettings("example", "python"),
                pulumi_command=automation.PulumiCommand(root=str(tools.links)),
                env_vars={
                    "PULUMI_BACKEND_URL": f"file://{tmp_path}",
                    "PULUMI_CONFIG_PASSPHRASE": "",
                    "PULUMI_DEBUG_PROVIDERS": ",".join(ports),
                    "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
                    "PULUMI_SKIP_UPDATE_CHECK": "true",
                },
            )
            stack = automation.create_or_select_stack("test", "example", program, opts=options)
            try:
                return "passed\n" + stack.preview(policy_packs=[str(PACK)]).stdout
            except automation.CommandError as error:
                return "stopped\n" + str(error)

        yield run


def gke_pool(taints: list[gcp.container.NodePoolNodeConfigTaintArgs]) -> None:
    gcp.container.NodePool(
        "l4-spot",
        cluster="training",
        location="us-central1",
        autoscaling=gcp.container.NodePoolAutoscalingArgs(total_max_node_count=4, total_min_node_count=0),
        node_config=gcp.container.NodePoolNodeConfigArgs(
            machine_type="g2-standard-4",
            spot=True,
            resource_labels={"owner": "research"},
            guest_accelerators=[gcp.container.NodePoolNodeConfigGuestAcceleratorArgs(type="nvidia-l4", count=1)],
            taints=taints,
        ),
    )


def karpenter_pool(limits: dict[str, str]) -> None:
    CustomResource(
        "a100-spot",
        api_version="karpenter.sh/v1",
        kind="NodePool",
        metadata={"name": "a100-spot", "labels": {"owner": "research"}},
        spec={
            "template": {
                "spec": {
                    "requirements": [
                        {"key": "karpenter.k8s.aws/instance-gpu-name", "operator": "In", "values": ["a100"]},
                        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
                    ],
                    "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"},
                    "taints": [
                        {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"},
                        {"key": "flexspot.dev/capacity-type", "value": "spot", "effect": "NoSchedule"},
                    ],
                }
            },
            "limits": limits,
        },
    )


def gpu_job(resources: ResourceRequirementsArgs | None) -> None:
    Job(
        "finetune",
        metadata={"name": "finetune", "namespace": "research"},
        spec=JobSpecArgs(
            template=PodTemplateSpecArgs(
                spec=PodSpecArgs(
                    restart_policy="Never",
                    node_selector={"cloud.google.com/gke-accelerator": "nvidia-l4"},
                    containers=[ContainerArgs(name="trainer", image="trainer:1", resources=resources)],
                )
            )
        ),
    )


GPU_TAINT = gcp.container.NodePoolNodeConfigTaintArgs(key="nvidia.com/gpu", value="present", effect="NO_SCHEDULE")
SPOT_TAINT = gcp.container.NodePoolNodeConfigTaintArgs(key="cloud.google.com/gke-spot", value="true", effect="NO_SCHEDULE")
ONE_GPU = ResourceRequirementsArgs(limits={"nvidia.com/gpu": "1"}, requests={"nvidia.com/gpu": "1"})


@pytest.mark.parametrize(
    "rule,resource,program",
    [
        ("gpu-pool-without-taint", "l4-spot", lambda: gke_pool([])),
        ("gpu-pool-without-limit", "a100-spot", lambda: karpenter_pool({})),
        ("gpu-container-without-limit", "finetune", lambda: gpu_job(None)),
    ],
)
def test_the_engine_stops_the_mistake_and_names_rule_and_resource(
    rule: str, resource: str, program: Callable[[], None], preview: Callable[[Callable[[], None]], str]
) -> None:
    printed = preview(program)

    assert printed.startswith("stopped"), printed
    assert "[mandatory]" in printed
    assert f"{rule}" in printed
    assert resource in printed


@pytest.mark.parametrize(
    "program",
    [lambda: gke_pool([GPU_TAINT, SPOT_TAINT]), lambda: karpenter_pool({"nvidia.com/gpu": "64"}), lambda: gpu_job(ONE_GPU)],
    ids=["tainted-pool", "limited-pool", "job-with-gpu"],
)
def test_the_corrected_twin_passes(program: Callable[[], None], preview: Callable[[Callable[[], None]], str]) -> None:
    printed = preview(program)

    assert printed.startswith("passed"), printed
    assert "[mandatory]" not in printed
