"""`flexspot images`, with AWS's public parameters served by moto's Systems Manager, in pages like AWS's."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
from moto import mock_aws
from moto.ssm.models import Parameter, ssm_backends
from typer.testing import CliRunner

from flexspot.capacity.catalog.data_files import read_records
from flexspot.capacity.catalog.node_images import ImageFile
from flexspot.capacity.plan.build import plan_of_stack_file
from flexspot.capacity.values.errors import ExitCode, ExplainedError, SettingsError
from flexspot.infra.cli.app import app
from flexspot.infra.project import project_here

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow

ACCOUNT, REGION = "123456789012", "us-east-1"

LISTED = {
    "1.35": {"v20270105": 9, "v20270112": 10},
    "1.36": {"v20270112": 6},
}
"""AL2023 releases that are newer than the shipped file."""


def parameters() -> Iterator[tuple[str, str]]:
    """Yield parameters with AWS's names.

    Sources: https://docs.aws.amazon.com/eks/latest/userguide/retrieve-ami-id.html and Karpenter's al2023.go.
    """
    root = "/aws/service/eks/optimized-ami"
    for version, releases in LISTED.items():
        for variant in ("standard", "nvidia"):
            folder = f"{root}/{version}/amazon-linux-2023/x86_64/{variant}"
            for release, patch in releases.items():
                image = f"{folder}/amazon-eks-node-al2023-x86_64-{variant}-{version}-{release}"
                yield f"{image}/image_id", "ami-0a1b2c3d4e5f60718"
                yield f"{image}/release_version", f"{version}.{patch}-{release[1:]}"
            yield f"{folder}/recommended/image_id", "ami-0a1b2c3d4e5f60718"
            # Only one of the releases has the image for Neuron devices.
            if variant == "standard" and "v20270105" in releases:
                image = f"{root}/{version}/amazon-linux-2023/x86_64/neuron/amazon-eks-node-al2023-x86_64-neuron-{version}-v20270105"
                yield f"{image}/image_id", "ami-0a1b2c3d4e5f60719"
    # This release has no image with a driver, so GPU nodes would have none.
    yield f"{root}/1.35/amazon-linux-2023/x86_64/standard/amazon-eks-node-al2023-x86_64-standard-1.35-v20270119/image_id", "ami-1"
    for variant, releases in (("", ("1.70.0", "1.71.0", "latest", "1.70.0-1a2b3c4d")), ("-nvidia", ("1.70.0", "latest"))):
        for release in releases:
            yield f"/aws/service/bottlerocket/aws-k8s-1.35{variant}/x86_64/{release}/image_id", "ami-2"


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "example")
    with mock_aws():
        backend: Any = ssm_backends[ACCOUNT][REGION]
        for name, value in parameters():
            # PutParameter refuses names below /aws, as AWS does.
            backend._parameters[name].append(  # noqa: SLF001 -- moto has no other way
                Parameter(
                    account_id=ACCOUNT,
                    name=name,
                    value=value,
                    parameter_type="String",
                    description="",
                    allowed_pattern=None,
                    keyid=None,
                    last_modified_date=0,
                    version=1,
                    data_type="text",
                )
            )
        yield


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a copy of the stacks, into which a test may write."""
    copies = tmp_path / "stacks"
    copies.mkdir()
    for path in project_here().stacks.glob("Pulumi.*.yaml"):
        shutil.copyfile(path, copies / path.name)
    (tmp_path / "Pulumi.yaml").write_text("name: own\nruntime: python\nstackConfigDir: stacks\n")
    monkeypatch.chdir(tmp_path)
    return copies


def images(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["images", *arguments], env={"COLUMNS": "160"})
    if isinstance(result.exception, ExplainedError):
        assert result.exception.exit_code == code
        return str(result.exception)
    assert result.exit_code == code, result.output
    return result.output


@pytest.mark.usefixtures("aws")
def test_releases_with_images_for_both_kinds_of_nodes_are_written_and_become_usable(folder: Path) -> None:
    output = images("refresh")

    file = read_records(folder / "node-images.yaml", ImageFile)
    assert {each.release: each.kubernetes for each in file.al2023} == {"v20270105": {"1.35": 9}, "v20270112": {"1.35": 10, "1.36": 6}}
    assert {each.release: each.neuron for each in file.al2023} == {"v20270105": {"1.35": True}, "v20270112": {"1.35": False, "1.36": False}}
    assert {each.release: each.kubernetes for each in file.bottlerocket} == {"1.70.0": {"1.35": None}}
    assert "write into stacks/Pulumi.dev-eks.yaml below cluster:  images_file: node-images.yaml" in output

    stack = folder / "Pulumi.dev-eks.yaml"
    raised = stack.read_text().replace("ami: al2023@v20260903", "ami: al2023@v20270112")
    stack.write_text(raised)
    with pytest.raises(SettingsError, match="is not a known release"):
        plan_of_stack_file(stack)
    stack.write_text(raised.replace("ami: al2023@v20270112", "ami: al2023@v20270112\n      images_file: node-images.yaml"))
    assert plan_of_stack_file(stack)
    assert "v20270112, al2023@v20270105, al2023@v20261112" in images("list", "-s", "dev-eks").replace("\n", "")


@pytest.mark.usefixtures("aws")
def test_a_dry_run_shows_releases_and_writes_nothing(folder: Path) -> None:
    output = images("refresh", "--dry-run", "-s", "dev-eks")

    assert "v20270112" in output
    assert "node-images.yaml is unchanged" in output
    assert not (folder / "node-images.yaml").exists()


@pytest.mark.usefixtures("aws", "folder")
def test_a_version_without_images_is_reported_and_nothing_is_written() -> None:
    assert "--kubernetes: AWS lists no image for 1.99 in us-east-1." in images("refresh", "--kubernetes", "1.99", code=ExitCode.UNMET)


@pytest.mark.usefixtures("folder")
def test_images_of_a_stack_outside_eks_are_bad_usage() -> None:
    assert "stack dev-gke is not on EKS." in images("list", "-s", "dev-gke", code=ExitCode.BAD_USAGE)


def test_a_missing_images_file_is_reported_with_its_line(folder: Path) -> None:
    stack = folder / "Pulumi.dev-eks.yaml"
    stack.write_text(stack.read_text().replace("ami: al2023@v20260903", "ami: al2023@v20260903\n      images_file: mine.yaml"))

    with pytest.raises(SettingsError, match=r"line 16: cluster\.images_file \(is 'mine\.yaml'\): does not exist"):
        plan_of_stack_file(stack)
