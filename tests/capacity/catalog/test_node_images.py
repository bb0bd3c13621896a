"""Releases of node images: known releases, their versions of Kubernetes, and the releases that examples name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from flexspot.capacity.catalog.data_files import DataFileError, read_records
from flexspot.capacity.catalog.node_images import ImageFile, as_yaml, shipped_images

ROOT = Path(__file__).parents[3]
SHIPPED = ROOT / "capacity" / "flexspot" / "capacity" / "catalog" / "node_images.yaml"

OWN = """\
sources:
  mine: {citation: what AWS listed to us, as_of: 2027-01-10, verified: true}
al2023:
  - {release: v20260903, source: mine, kubernetes: {"1.37": 1}}
  - {release: v20270105, source: mine, kubernetes: {"1.35": 9, "1.38": 0}, neuron: {"1.35": false}}
"""


def test_a_custom_file_adds_releases_and_versions_and_removes_none(tmp_path: Path) -> None:
    path = tmp_path / "node-images.yaml"
    path.write_text(OWN)

    book = shipped_images().with_file(path)

    assert book.with_images_for("al2023", "1.35")[-1] == "al2023@v20270105"
    assert book.versions_of("al2023@v20260903") == [*shipped_images().versions_of("al2023@v20260903"), "1.37"]
    assert book.versions_of("al2023@v20270105") == ["1.35", "1.38"]
    assert book.versions("bottlerocket") == shipped_images().versions("bottlerocket")


def test_written_releases_are_read_again(tmp_path: Path) -> None:
    file = read_records(SHIPPED, ImageFile)
    path = tmp_path / "again.yaml"
    path.write_text(as_yaml(file))

    assert read_records(path, ImageFile) == file


@pytest.mark.parametrize(
    "rows, problem",
    [
        ("al2023: [{release: '20260903', source: mine, kubernetes: {'1.35': 7}}]", "al2023 has 20260903, which is not how it writes a"),
        ("bottlerocket: [{release: v1.53.0, source: mine, kubernetes: {'1.35': null}}]", "bottlerocket has v1.53.0, which is not"),
        ("al2023: [{release: v20260903, source: yours, kubernetes: {'1.35': 7}}]", "v20260903: source 'yours' is not one of mine"),
        ("al2023: [{release: v20260903, source: mine, kubernetes: {'1.35.7': 7}}]", "1.35.7"),
        (
            "al2023: [{release: v20260903, source: mine, kubernetes: {'1.35': 7}, neuron: {'1.34': true}}]",
            "al2023@v20260903 says of Neuron what it has no image for",
        ),
        (
            "bottlerocket: [{release: 1.10.0, source: mine, kubernetes: {}}, {release: 1.9.0, source: mine, kubernetes: {}}]",
            "bottlerocket has a release twice, or its releases are out of order",
        ),
    ],
)
def test_a_file_that_says_something_else_is_refused(rows: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(f"sources: {{mine: {{citation: what AWS listed to us, as_of: 2027-01-10, verified: true}}}}\n{rows}\n")

    with pytest.raises(DataFileError) as refused:
        read_records(path, ImageFile)

    assert problem in str(refused.value)


@pytest.mark.slow
def test_every_alias_that_a_stack_a_page_or_a_message_names_has_images_for_the_stacks_version() -> None:
    versions = {
        yaml.safe_load((ROOT / "stacks" / f"Pulumi.{stack}.yaml").read_text())["config"]["flexspot:platform"]["cluster"]["version"]
        for stack in ("dev-eks", "prod-eks")
    }
    written = [
        (str(path.relative_to(ROOT)), alias)
        for pattern in (
            "README.md",
            "stacks/*",
            "docs/**/*.md",
            *(f"{room}/**/*.py" for room in ("capacity", "components", "policies", "infra")),
        )
        for path in ROOT.glob(pattern)
        for alias in re.findall(r"\b(?:al2023|bottlerocket)@v?[\d.]*\d\b", path.read_text(encoding="utf-8"))
    ]

    assert len(written) > 20, "there are examples"
    book = shipped_images()
    assert [(path, alias) for path, alias in written if not versions <= set(book.versions_of(alias))] == []
