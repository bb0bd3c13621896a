"""`flexspot import` from the command line: its files, forms and errors, and the real engine on its proposals."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from pulumi_aws import eks
from pulumi_gcp import container
from served_cluster import Served, serving
from typer.testing import CliRunner

from flexspot.capacity.settings.stack_file import read_stack_file
from flexspot.infra.cli.app import app
from flexspot.infra.deployment.prerequisites import PLUGINS
from flexspot.lab.engine import own_root
from flexspot.lab.providers.offline import OfflineProvider
from flexspot.lab.providers.serving import serve

if TYPE_CHECKING:
    from checkout_fixtures import OwnCheckout

    from flexspot.lab.tools.build import Tools

STATES = Path(__file__).parents[1] / "capacity" / "adopting" / "states"


def ran(*arguments: str | Path, given: bytes | None = None) -> Any:
    return CliRunner().invoke(app, ["import", *map(str, arguments)], input=given)


def test_only_the_stack_file_goes_to_standard_output() -> None:
    result = ran(STATES / "gke-toolkit.json")

    assert result.exit_code == 0
    assert yaml.safe_load(result.stdout)["config"]["gcp:project"] == "acme-train"
    assert "not mapped: module.odd.google_container_node_pool.node_pool[0]: a9-quantumgpu-8g" in result.stderr
    assert "guess: teams:" in result.stderr
    assert "can be adopted: gcp:container/nodePool:NodePool acme-train/us-central1/a3-ultra/l4-spot" in result.stderr


def test_files_are_written_to_the_named_paths_and_never_overwritten(tmp_path: Path) -> None:
    stack, ids = tmp_path / "stacks" / "Pulumi.x.yaml", tmp_path / "ids"
    first = ran(STATES / "eks-module.json", "--stack", "x", "--out", stack, "--ids", ids)
    second = ran(STATES / "eks-module.json", "--out", stack)

    assert first.exit_code == 0
    assert read_stack_file(stack).environment == "prod"
    assert {each["logicalName"] for each in json.loads((ids / "import-cluster.json").read_text())["resources"]} >= {
        "gpu-l4",
        "gpu-l4-node-pool",
    }
    assert "flexspot settings check -s x" in first.stdout
    assert second.exit_code != 0
    assert "already exists" in str(second.exception)


def test_json_has_settings_guesses_omissions_and_the_file() -> None:
    report = json.loads(ran(STATES / "gke-raw.tfstate", "--format", "json").stdout)

    assert set(report) == {
        *("stack", "settings", "guesses", "not_mapped", "warnings"),
        *("import_files", "elsewhere", "stack_file"),
    }
    assert yaml.safe_load(report["stack_file"])["config"]["flexspot:platform"] == report["settings"]
    assert all(each["why"] and each["remedy"] and each["addresses"] for each in report["not_mapped"])


def test_a_state_is_read_from_standard_input() -> None:
    result = ran("-", given=(STATES / "gke-raw.tfstate").read_bytes())

    assert result.exit_code == 0
    assert "acme-lab1" in result.stdout


@pytest.mark.slow
def test_a_hostile_state_is_an_error_without_traceback(tmp_path: Path, checkout: OwnCheckout) -> None:
    clusters = [
        {"address": f"a\x1b[2J\n{each}", "type": "google_container_cluster", "values": {"name": "n", "location": "l"}} for each in range(2)
    ]
    state = tmp_path / "state.json"
    state.write_text(json.dumps({"format_version": "1.0", "values": {"root_module": {"resources": clusters}}}))
    result = checkout.flexspot("import", str(state))

    assert (result.returncode, result.stdout) == (2, "")
    assert "has 2 clusters (a\\x1b[2J" in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
    assert "\x1b" not in result.stderr


@pytest.mark.parametrize("arguments", [(), ("/no/such/file",), ("/",), ("a\x00b",), ("-", "--stack", "a/../b")])
def test_bad_usage_of_import_has_exit_code_2(arguments: tuple[str, ...]) -> None:
    result = ran(*arguments, given=b"{}")

    assert getattr(result.exception, "exit_code", result.exit_code) == 2


@pytest.mark.parametrize("option", ["--owner", "--environment", "--account", "--region", "--cluster"])
def test_invalid_options_of_import_are_refused(option: str) -> None:
    result = ran(STATES / "eks-module.json", "--stack", "taken", option, "Not a Name")

    assert getattr(result.exception, "exit_code", result.exit_code) == 2
    assert result.stdout == ""


def test_a_cluster_is_read_in_addition_to_a_state_and_has_the_teams(tmp_path: Path) -> None:
    flavor = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "gpu-l4"}, "spec": {}}
    quota = {"name": "gpu-l4", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": "8"}]}
    groups = [{"coveredResources": ["nvidia.com/gpu"], "flavors": [quota]}]
    queue = {**flavor, "kind": "ClusterQueue", "metadata": {"name": "q"}, "spec": {"cohortName": "ml", "resourceGroups": groups}}
    local = {**flavor, "kind": "LocalQueue", "metadata": {"name": "default", "namespace": "nlp"}, "spec": {"clusterQueue": "q"}}
    served = Served([flavor, queue, local], version="v1.35.2-eks-1", forbidden={"nodes"})
    with serving(served, tmp_path) as kubeconfig:
        result = ran(STATES / "eks-module.json", "--kubeconfig", kubeconfig, "--format", "json")
    report = json.loads(result.stdout)

    assert report["settings"]["teams"] == [{"name": "nlp", "shares": {"gpu-l4": 8}}]
    assert {"gpu-l4", "t4-spot", "p5-block"} == {each["name"] for each in report["settings"]["pools"]}
    assert ["list nodes"] in [each["addresses"] for each in report["not_mapped"]]
    assert all(each.startswith("GET ") and "secret" not in each for each in served.asked)


@pytest.mark.engine
def test_the_real_engine_previews_the_proposal(checkout: OwnCheckout) -> None:
    options = ("--stack", "taken", "--out", "stacks/Pulumi.taken.yaml", "--environment", "dev")
    made = checkout.flexspot("import", str(STATES / "eks-module.json"), *options)
    checked = checkout.flexspot("settings", "check", "-s", "taken", "--format", "json")
    shown = checkout.flexspot("preview", "-s", "taken", "--offline")

    assert made.returncode == 0, made.stderr
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert shown.returncode == 0, shown.stdout + shown.stderr
    pools = len(json.loads(checked.stdout)["pools"]) if "pools" in json.loads(checked.stdout) else 2
    assert len(re.findall("kubernetes:karpenter.sh/v1:NodePool ", shown.stdout)) >= pools


def _documented(resource: Any) -> str:
    """Return the provider's documentation of importing a resource, from its SDK's source."""
    text = Path(inspect.getfile(resource)).read_text(encoding="utf-8")
    return text.partition("## Import")[2][:3000]


def test_ids_have_the_forms_that_the_providers_document() -> None:
    assert "{{project_id}}/{{location}}/{{cluster_id}}/{{pool_id}}" in _documented(container.NodePool)
    assert "projects/{{project_id}}/locations/{{location}}/clusters/{{cluster_id}}" in _documented(container.Cluster)
    assert re.search(r"pulumi import aws:eks/cluster:Cluster \w+ [\w-]+\s", _documented(eks.Cluster))
    assert re.search(r"pulumi import aws:eks/nodeGroup:NodeGroup \w+ [\w-]+:[\w-]+\s", _documented(eks.NodeGroup))


@pytest.mark.engine
@pytest.mark.nightly(
    tested_by="test_adopted_resources_are_declared_by_the_proposals_program, test_ids_have_the_forms_that_the_providers_document"
)
def test_the_real_pulumi_imports_the_file_with_the_programs_urns(tmp_path: Path, tools: Tools) -> None:
    """Test `pulumi import --file` of the official engine. The state that it writes has the URNs that the program uses."""
    ids = tmp_path / "import-cloud.json"
    assert ran(STATES / "gke-toolkit.json", "--stack", "taken", "--ids", tmp_path).exit_code == 0
    root = own_root(lambda: tools)
    program = str(root / "bin" / "pulumi") if root else "pulumi"
    path = f"{root / 'bin'}{os.pathsep}{os.environ['PATH']}" if root else os.environ["PATH"]
    (tmp_path / "Pulumi.yaml").write_text("{name: flexspot, runtime: yaml}\n")
    environment = os.environ | {
        "PULUMI_BACKEND_URL": f"file://{tmp_path}",
        "PULUMI_CONFIG_PASSPHRASE": "",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_HOME": str(tmp_path / "home"),
        "PATH": path,
    }

    def pulumi(*arguments: str, **more: str) -> str:
        command = [program, *arguments, "--non-interactive"]
        done = subprocess.run(command, cwd=tmp_path, env=environment | more, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    pulumi("stack", "init", "taken")
    with serve(OfflineProvider("gcp", PLUGINS["gcp"])) as port:
        options = ("--yes", "--generate-code=false", "--skip-plugin-pre-install", "--skip-preview")
        pulumi("import", "--file", str(ids), *options, PULUMI_DEBUG_PROVIDERS=f"gcp:{port}")
    state = json.loads(pulumi("stack", "export"))["deployment"]["resources"]
    pools = {each["urn"]: each["id"] for each in state if each["type"] == "gcp:container/nodePool:NodePool"}

    urn = "urn:pulumi:taken::flexspot::flexspot:index:GkeGpuNodePool$gcp:container/nodePool:NodePool::{}-node-pool"
    names = ("h100-res", "h100-dws", "a100-flex", "l4-spot")
    assert pools == {urn.format(name): f"acme-train/us-central1/a3-ultra/{name}" for name in names}
