"""`flexspot versions`: the versions of a stack, and the changes by another version of Kubernetes."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from auto_mode_settings import auto_mode_settings
from program_declarations import declared, shipped
from typer.testing import CliRunner

from flexspot.capacity.catalog.versions import Addon
from flexspot.capacity.values.errors import ExitCode, ExplainedError
from flexspot.infra.cli.app import app
from flexspot.infra.project import project_here

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of stacks that a test may change."""
    monkeypatch.setenv("COLUMNS", "200")
    copies = tmp_path / "stacks"
    copies.mkdir()
    shutil.copy(project_here().stacks / "Pulumi.dev-eks.yaml", copies)
    (tmp_path / "Pulumi.yaml").write_text("name: own\nruntime: python\nstackConfigDir: stacks\n")
    monkeypatch.chdir(tmp_path)
    return copies


def written(folder: Path, before: str, after: str) -> None:
    path = folder / "Pulumi.dev-eks.yaml"
    path.write_text(path.read_text().replace(before, after, 1))


def rows(text: str) -> dict[str, list[str]]:
    cells = ([cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines() if line.startswith("│"))
    return {part: versions for part, *versions in cells}


def test_every_part_of_a_stack_is_listed_with_the_source_of_its_version(folder: Path) -> None:
    assert folder
    listed = rows(CliRunner().invoke(app, ["versions", "list", "-s", "dev-eks"]).output)

    assert list(listed)[:5] == ["Kubernetes", "eks-pod-identity-agent", "kube-proxy", "vpc-cni", "system nodes"]
    assert listed["kube-proxy"] == ["v1.35.3-eksbuild.13"]
    assert listed["system nodes"] == ["1.35.7-20260903"]
    assert listed["aws-ebs-csi-driver"] == ["EKS's default"]
    assert listed["chart karpenter"] == ["1.14.1"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        shipped(
            "dev-eks",
            cluster=shipped("dev-eks")["cluster"] | {"addons": {"metrics_server": False}},
            storage={"checkpoints": "efs", "datasets": "lustre"},
        ),
        auto_mode_settings(),
    ],
    ids=["with EFS and Lustre and without metrics-server", "in Auto Mode"],
)
def test_only_installed_add_ons_are_listed(folder: Path, settings: dict[str, Any]) -> None:
    file = folder / "Pulumi.dev-eks.yaml"
    content = yaml.safe_load(file.read_text())
    content["config"]["flexspot:platform"] = settings
    file.write_text(yaml.safe_dump(content))

    listed = rows(CliRunner().invoke(app, ["versions", "list", "-s", "dev-eks"], catch_exceptions=False).output)

    program = declared("dev-eks", settings)
    assert {name for name in listed if name in set(Addon)} == {each["addonName"] for each in program.inputs_of("aws:eks/addon:Addon")}
    assert ("system nodes" in listed) is bool(program.of("aws:eks/nodeGroup:NodeGroup"))
    charts = {each["chart"].rpartition("/")[2] for each in program.inputs_of("kubernetes:helm.sh/v3:Release")}
    assert {name.removeprefix("chart ") for name in listed if name.startswith("chart ")} <= charts


def test_an_upgrade_shows_changes_and_unchanged_parts(folder: Path) -> None:
    written(folder, 'version: "1.35"', 'version: "1.34"\n      addon_versions: {coredns: v1.13.2-eksbuild.31}')

    result = CliRunner().invoke(app, ["versions", "upgrade", "-s", "dev-eks", "--to", "1.35"])

    assert result.exit_code == 0, result.output
    assert rows(result.output) == {
        "Kubernetes": ["1.34", "1.35"],
        "eks-pod-identity-agent": ["EKS's default", "as it is"],
        "kube-proxy": ["v1.34.6-eksbuild.13", "v1.35.3-eksbuild.13"],
        "system nodes": ["1.34.10-20260903", "1.35.7-20260903"],
        "aws-ebs-csi-driver": ["EKS's default", "as it is"],
        "aws-mountpoint-s3-csi-driver": ["EKS's default", "as it is"],
        "eks-node-monitoring-agent": ["EKS's default", "as it is"],
        "metrics-server": ["EKS's default", "as it is"],
    }
    assert "can be upgraded to 1.35" in result.output


def test_obstacles_to_an_upgrade_are_reported_with_remedies(folder: Path) -> None:
    written(folder, 'version: "1.35"\n      ami: al2023@v20260903', 'version: "1.34"\n      ami: al2023@v20251217')

    result = CliRunner().invoke(app, ["versions", "upgrade", "-s", "dev-eks", "--to", "1.35"])
    assert result.exit_code == ExitCode.UNMET
    assert "has images for Kubernetes 1.29 to 1.34 but none for 1.35" in " ".join(result.output.split())

    result = CliRunner().invoke(app, ["versions", "upgrade", "-s", "dev-eks", "--to", "1.35", "--ami", "al2023@v20260903"])
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("to", ["1.37", "1.35", "1.34"])
def test_a_version_that_is_not_the_next_is_refused(folder: Path, to: str) -> None:
    """EKS: "you can only update one minor version at a time" (user guide, update-cluster.html)."""
    assert folder
    with pytest.raises(ExplainedError, match=r"EKS upgrades 1\.35 only to 1\.36"):
        CliRunner().invoke(app, ["versions", "upgrade", "-s", "dev-eks", "--to", to], catch_exceptions=False)


def test_an_existing_cluster_is_not_upgraded_by_the_stack(folder: Path) -> None:
    written(folder, "deletion_protection: false", "existing: theirs")

    with pytest.raises(ExplainedError, match="an existing cluster, which Flexspot does not upgrade"):
        CliRunner().invoke(app, ["versions", "upgrade", "-s", "dev-eks", "--to", "1.36"], catch_exceptions=False)
