"""The installed wheel in folders outside this checkout."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zipfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import pytest
import yaml
from google.protobuf import empty_pb2
from installed_fixtures import CHECKOUT, outside_of_the_checkout, uv
from program_declarations import as_shipped
from pulumi.runtime.proto import analyzer_pb2_grpc, provider_pb2, provider_pb2_grpc

from flexspot.policies.rules import all_rules

if TYPE_CHECKING:
    from collections.abc import Generator

    from installed_fixtures import Installed

pytestmark = pytest.mark.engine

FOLDERS = ("capacity", "components", "policies", "infra", "lab")


@contextmanager
def served(python: Path, plugin: Path, *, folder: Path) -> Generator[grpc.Channel]:
    """Yield a channel to a plugin that `python` starts in `folder`. The plugin prints its port when it is ready."""
    environment = outside_of_the_checkout() | {"PYTHONWARNINGS": "ignore"}
    command = [python, "-u", plugin, "127.0.0.1:1"]
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            # The schema is larger than gRPC's default limit.
            whole = [("grpc.max_receive_message_length", -1)]
            with grpc.insecure_channel(f"127.0.0.1:{int(process.stdout.readline())}", options=whole) as channel:
                yield channel
        finally:
            process.kill()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a foreign project, with its own packages that have the names of folders here."""
    folder = tmp_path / "acme"
    (folder / "stacks").mkdir(parents=True)
    for stack in ("dev-eks", "dev-gke"):
        shutil.copyfile(CHECKOUT / "stacks" / f"Pulumi.{stack}.yaml", folder / "stacks" / f"Pulumi.{stack}.yaml")
    (folder / "Pulumi.yaml").write_text("name: acme-ai\nruntime: python\nstackConfigDir: stacks\n")
    for name in FOLDERS:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(f"OWN = 'the {name} of acme'\n")
    return folder


def test_the_wheel_contains_the_namespace_package_of_the_checkout(installed: Installed) -> None:
    parts = [f"{each}/flexspot" for each in FOLDERS]
    command = ["git", "ls-files", *parts]
    listed = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout.split()
    tracked = {name.partition("/")[2]: CHECKOUT / name for name in listed if (CHECKOUT / name).is_file()}
    with zipfile.ZipFile(installed.wheel) as wheel:
        held = {name: wheel.read(name) for name in wheel.namelist() if ".dist-info/" not in name}

    assert len(tracked) > 400
    assert {name: path.read_bytes() for name, path in tracked.items()} == held


def test_the_same_sources_build_the_same_wheel(installed: Installed, tmp_path: Path) -> None:
    uv("build", "--quiet", "--wheel", "--out-dir", tmp_path, CHECKOUT)

    assert (tmp_path / installed.wheel.name).read_bytes() == installed.wheel.read_bytes()


@pytest.mark.nightly(
    tested_by="test_commands_work_on_the_project_of_the_current_folder, test_the_wheel_contains_the_namespace_package_of_the_checkout"
)
def test_every_module_of_the_wheel_can_be_imported_next_to_packages_of_the_same_names(installed: Installed, project: Path) -> None:
    program = f"""
import importlib, json, pkgutil, sys
import flexspot
FOLDERS = {FOLDERS}
for each in pkgutil.walk_packages(flexspot.__path__, "flexspot."):
    # What begins to work when it is imported, what is a program for a container or for Google's Python, and what needs the extras own-rules
    # and parquet.
    if not each.name.endswith(("__main__", "stock_out_watch", "notebook_stop", "own_rules.evaluation", "bills.parquet")):
        importlib.import_module(each.name)
own = [importlib.import_module(name).OWN for name in FOLDERS]
count = sum(name.startswith("flexspot.") for name in sys.modules)
foreign = [name for name in sys.modules if name.partition(".")[0] in FOLDERS and "." in name]
print(json.dumps([own, count, foreign]))
"""
    result = installed.run(installed.python, "-W", "ignore", "-c", program, folder=project)

    assert result.returncode == 0, result.stderr
    own, count, foreign = json.loads(result.stdout)
    assert own == [f"the {name} of acme" for name in FOLDERS]
    assert count > 300
    assert foreign == []


def test_commands_work_on_the_project_of_the_current_folder(installed: Installed, project: Path) -> None:
    checked = installed.flexspot("settings", "check", "-s", "dev-eks", folder=project / "components")
    previewed = installed.flexspot("preview", "-s", "dev-eks", "--offline", "--plan-out", "plan.json", folder=project)
    cost = installed.flexspot("cost", "plan.json", "--format", "json", folder=project)
    linted = installed.flexspot("lint", ".", folder=project)
    wanted = ("--team", "research", "--class", "training", "--name", "one", "--image", "registry.example.com/a:1.0", "--gpus", "1")
    rendered = installed.flexspot("render", "checkpointed-job", "-s", "dev-eks", *wanted, folder=project)

    for each in (checked, previewed, cost, linted, rendered):
        assert each.returncode == 0, each.stdout + each.stderr
    plan = json.loads((project / "plan.json").read_text())
    assert {each["urn"].split(":")[4] for each in plan["resources"]} == {"acme-ai"}, "the project's own name, not ours"
    assert len(plan["resources"]) == len(as_shipped("dev-eks").made) + 1, "all that is declared, and the stack"
    assert "flexspot@" in previewed.stdout, "judged by the policies that come with it"
    assert "no findings" in linted.stdout
    assert "for the cluster of stacks/Pulumi.dev-eks.yaml" in rendered.stdout
    assert {path.name for path in project.iterdir()} - {*FOLDERS, "Pulumi.yaml", "stacks", "plan.json"} == {".tools"}


def readme_commands(folder: Path, heading: str) -> list[str]:
    """Return the command lines in a section of a project's README."""
    section = (folder / "README.md").read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return [line.strip() for line in section.splitlines() if line.startswith("    ")]


def test_a_project_is_created_in_an_empty_folder_and_the_commands_of_its_readme_work(installed: Installed, tmp_path: Path) -> None:
    accounts = ("--account", "acme-dev", "--prod-account", "acme-prod")
    made = installed.flexspot("init", "--cloud", "gke", "--owner", "ml-platform", "--team", "research,product", *accounts, folder=tmp_path)
    assert made.returncode == 0, made.stderr
    (tmp_path / "components").mkdir()
    (tmp_path / "components" / "__init__.py").write_text("raise ImportError('these are not the components that Flexspot means')\n")
    commands = [line for line in readme_commands(tmp_path, "Every day") if "lab" not in line and "local" not in line]

    assert [line.split()[1] for line in commands] == ["settings", "preview", "cost", "lint"]
    for line in commands:
        done = installed.run("bash", "-c", line, folder=tmp_path)
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
    assert installed.flexspot("preview", "-s", "prod", "--offline", folder=tmp_path).returncode == 0


@pytest.mark.lab
@pytest.mark.nightly(tested_by="test_a_project_is_created_in_an_empty_folder_and_the_commands_of_its_readme_work")
def test_a_new_project_goes_up_on_its_lab_and_plain_pulumi_changes_nothing(installed: Installed, tmp_path: Path) -> None:
    """The program runs in the user's process, next to a user's package with the name of one of ours. Policies run from their folder."""
    assert installed.flexspot("init", "--cloud", "local", "--owner", "ml", "--team", "research", folder=tmp_path).returncode == 0
    (tmp_path / "components").mkdir()
    (tmp_path / "components" / "__init__.py").write_text("OWN = 'acme'\n")
    program = tmp_path / "__main__.py"
    program.write_text(program.read_text() + "\nimport components\nimport pulumi\n\npulumi.export('own', components.OWN)\n")
    # As its README says. The official host takes Python from there; ours uses the first one on PATH.
    (tmp_path / ".venv").symlink_to(installed.environment)
    try:
        for line in readme_commands(tmp_path, "Every day"):
            if line.startswith(("flexspot lab start", "flexspot up")):
                done = installed.run("bash", "-c", line.replace("up -s local", "up -s local --yes"), folder=tmp_path)
                assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
        own = installed.flexspot("lab", "pulumi", "stack", "output", "own", "-s", "local", folder=tmp_path).stdout.strip()
        pack = installed.flexspot("rules", "pack", folder=tmp_path).stdout.strip()
        plain = installed.flexspot(
            *("lab", "pulumi", "preview", "-s", "local", "--policy-pack", f"{pack}/pack", "--non-interactive", "--json"), folder=tmp_path
        )
    finally:
        installed.flexspot("lab", "stop", "--delete", folder=tmp_path)

    assert plain.returncode == 0, plain.stdout + plain.stderr
    result = json.loads(plain.stdout[plain.stdout.index("{") :])
    assert set(result["changeSummary"]) == {"same"}
    assert result["changeSummary"]["same"] > 40
    assert own == "acme"


def test_pulumis_python_host_can_start_the_installed_policy_pack(installed: Installed, tmp_path: Path) -> None:
    """The host runs `bin/python` of `virtualenv`, as seen from the pack, with the pack's folder (pulumi: sdk/python/toolchain/pip.go)."""
    result = installed.flexspot("rules", "pack", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    pack = Path(result.stdout.rstrip("\n"))
    assert pack.is_relative_to(installed.environment)
    options = yaml.safe_load((pack / "PulumiPolicy.yaml").read_text())["runtime"]["options"]
    assert options["toolchain"] == "pip"
    python = pack / options["virtualenv"] / "bin" / "python"

    with served(python, pack, folder=tmp_path) as channel:
        described = analyzer_pb2_grpc.AnalyzerStub(channel).GetAnalyzerInfo(empty_pb2.Empty(), timeout=60)

    assert {rule.name for rule in all_rules()} <= {each.name for each in described.policies}


@pytest.mark.parametrize("cloud,other", [("eks", "pulumi_gcp"), ("gke", "pulumi_aws")])
def test_a_clouds_plugin_runs_in_the_environment_that_pulumi_creates(cloud: str, other: str, tmp_path: Path) -> None:
    """Pulumi's host installs requirements.txt of the folder into `virtualenv` (pulumi: sdk/python/toolchain/pip.go)."""
    plugin = CHECKOUT / "infra" / "plugins" / cloud
    runtime = yaml.safe_load((plugin / "PulumiPlugin.yaml").read_text())["runtime"]
    assert runtime == {"name": "python", "options": {"toolchain": "pip", "virtualenv": "venv"}}
    python = tmp_path / "venv" / "bin" / "python"
    uv("venv", "--quiet", "--python", sys.executable, tmp_path / "venv")
    uv("pip", "install", "--quiet", "--python", python, "--requirement", "requirements.txt", folder=plugin)

    with served(python, plugin, folder=tmp_path) as channel:
        result = provider_pb2_grpc.ResourceProviderStub(channel).GetSchema(provider_pb2.GetSchemaRequest(), timeout=60)

    assert json.loads(result.schema)["name"] == f"flexspot-{cloud}"
    names = {path.name for path in (tmp_path / "venv").glob("lib/*/site-packages/*")}
    assert "pulumi_kubernetes" in names
    assert names.isdisjoint({other, "flexspot_runtime"}), "an engine installs the provider plugin of each SDK that is there"


def test_the_installed_pack_starts_with_a_python_without_its_packages(installed: Installed, project: Path) -> None:
    """`env python3` finds the first Python on PATH; here, that one does not have Pulumi."""
    bare = project / "bare"
    uv("venv", "--quiet", bare)
    with served(bare / "bin" / "python", installed.package / "policies" / "pack", folder=project) as channel:
        described = analyzer_pb2_grpc.AnalyzerStub(channel).GetAnalyzerInfo(empty_pb2.Empty(), timeout=60)

    assert described.policies


NAMES = r"\bflexspot(?:\.[a-z_]\w*)+(?:\.[A-Z]\w*)?"
IMPORTS = r"from (flexspot(?:\.\w+)*) import (\w+(?:, \w+)*)"

FOREIGN_NAMES = ("flexspot.dev", "flexspot.yaml", "flexspot.cdx", "flexspot.sarif", "flexspot.git")
"""Names that are not modules: labels, files, an address."""

LOOKS_UP = """
import importlib, json, sys
for name in json.load(sys.stdin):
    module = name
    while True:
        try:
            found = importlib.import_module(module)
            break
        except ModuleNotFoundError:
            module = module.rpartition(".")[0]
    for each in name.removeprefix(module).split(".")[1:]:
        found = getattr(found, each)
"""


def documented_names() -> list[str]:
    """Return the package's names in pages and templates: modules, components, functions."""
    pages = [CHECKOUT / "README.md", CHECKOUT / "CONTRIBUTING.md", *(CHECKOUT / "docs").rglob("*.md")]
    templates = (CHECKOUT / "infra" / "flexspot" / "infra" / "new_project" / "templates").iterdir()
    texts = [each.read_text(encoding="utf-8") for each in (*pages, *templates) if "decisions" not in each.parts]
    named = {name for text in texts for name in re.findall(NAMES, text) if not name.startswith(FOREIGN_NAMES)}
    imported = {f"{module}.{each}" for text in texts for module, names in re.findall(IMPORTS, text) for each in names.split(", ")}
    return sorted(named | imported)


def test_every_documented_name_exists_in_the_checkout_and_the_installed_wheel(installed: Installed, project: Path) -> None:
    names = documented_names()
    assert {"flexspot.program.main", "flexspot.components.eks.cluster.EksCluster", "flexspot.policies.pages"} <= {*names}

    for python, folder in ((sys.executable, CHECKOUT), (installed.python, project)):
        command = [str(python), "-W", "ignore", "-c", LOOKS_UP]
        looked = subprocess.run(
            command, input=json.dumps(names), cwd=folder, env=outside_of_the_checkout(), capture_output=True, text=True, check=False
        )
        assert looked.returncode == 0, looked.stderr
