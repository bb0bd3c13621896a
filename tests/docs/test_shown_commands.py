"""Every line of shell that the documents show is run, here or by another test, or is marked with what it needs.

shown_commands.yaml says by whom. What is run here runs as a reader would run it: a page's lines in their order.
"""

from __future__ import annotations

import ast
import os
import shlex
import shutil
import subprocess
import sys
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import site_pages
import yaml
from command_line import flexspot
from plan_settings import own_class
from shown_commands import Shown, shown_commands
from spot_traces import made_trace, write_trace

if TYPE_CHECKING:
    from collections.abc import Iterator

CHECKOUT = site_pages.CHECKOUT
WHO: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("shown_commands.yaml").read_text(encoding="utf-8"))
SHOWN = list(shown_commands())

GIVEN = {
    "NAME": "dev-eks",
    "HOURS.csv": "hours.csv",
    "JOBS": "jobs.yaml",
    "TRACES": "traces",
    "PAGE": "page.html",
    "USE": "use.txt",
    "PRICES": "prices.yaml",
}
"""Words in capitals that a reader replaces, with their values here."""

REFUSED = {"bert:latest": 2}
"""Commands that a guide shows being rejected, by a word of them, with the exit code."""

RULE = """\
own-rules:
  - name: image-of-our-registry
    kinds: [Pod]
    check: "object.spec.containers.all(c, c.image.startsWith('reg.acme.com/'))"
    message: a container's image is not of reg.acme.com
    remediation: push the image to reg.acme.com, and name it there
"""
POD = "apiVersion: v1\nkind: Pod\nmetadata: {{name: a, namespace: team-a}}\nspec: {{containers: [{{name: a, image: '{}/a:1.0'}}]}}\n"
PLAIN = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: team-a}\n"


def patterns(part: str) -> Iterator[str]:
    """Return the patterns of a part of shown_commands.yaml."""
    return chain.from_iterable(WHO[part].values()) if isinstance(WHO[part], dict) else iter(WHO[part])


def is_of(shown: Shown, part: str) -> bool:
    """Return whether a part covers the line. Entries for other places or with needs override a wider pattern that is run here."""
    return any(fnmatchcase(shown.said, each) for each in patterns(part))


def runs_here(shown: Shown) -> bool:
    return is_of(shown, "here") and not is_of(shown, "elsewhere") and not is_of(shown, "needs")


def test_every_line_of_shell_is_run_by_a_test_or_marked_with_what_it_needs() -> None:
    assert [each for each in SHOWN if not any(is_of(each, part) for part in WHO)] == []


@pytest.mark.parametrize("part", WHO)
def test_every_pattern_is_of_a_line_that_is_shown(part: str) -> None:
    assert [each for each in patterns(part) if not any(fnmatchcase(shown.said, each) for shown in SHOWN)] == []


@pytest.mark.parametrize("test", WHO["elsewhere"])
def test_a_test_that_runs_lines_is_there_and_says_their_command(test: str) -> None:
    path, _, name = test.partition("::")
    source = (CHECKOUT / path).read_text(encoding="utf-8")
    names = {each.name for each in ast.walk(ast.parse(source)) if isinstance(each, ast.FunctionDef) and each.name.startswith("test_")}

    assert names
    assert name == "*" or name in names


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a folder with the shipped stacks and a reader's files, under the names that the documents use."""
    place = tmp_path / "checkout"
    shutil.copytree(CHECKOUT / "stacks", place / "stacks")
    shutil.copy(CHECKOUT / "Pulumi.yaml", place)
    shutil.copy(place / "stacks" / "Pulumi.dev-eks.yaml", place / "stacks" / "Pulumi.ml-dev.yaml")
    for manifest in ("teams/a.yaml", "charts/rendered.yaml", "path/to/manifests/a.yaml", "clusters/prod/a.yaml", "apps/prod/b.yaml"):
        (place / manifest).parent.mkdir(parents=True, exist_ok=True)
        (place / manifest).write_text(PLAIN.replace("settings", Path(manifest).stem))
    (place / "my-platform").mkdir()
    for folder in ("clusters/dev", "found", "traces"):
        (place / folder).mkdir(parents=True)
        (place / folder / "a.yaml").write_text(PLAIN)
    (place / "traces" / "a.yaml").unlink()
    write_trace(made_trace(1, ticks=300), place / "traces" / "one.json")
    fixtures = place / "flexspot-rules" / "image-of-our-registry"
    fixtures.mkdir(parents=True)
    (place / "flexspot-lint.yaml").write_text(RULE)
    (fixtures / "passes_ours.yaml").write_text(POD.format("reg.acme.com"))
    (fixtures / "fails_theirs.yaml").write_text(POD.format("docker.io"))
    hours = [f"2026-10-{day:02}T{hour:02}:00Z,us-east-1,p4d.24xlarge,on-demand,2" for day in range(1, 16) for hour in range(24)]
    (place / "hours.csv").write_text("\n".join(("hour,region,machine,capacity_type,nodes", *hours)))
    shutil.copy(CHECKOUT / "tests" / "capacity" / "adopting" / "states" / "eks-module.json", place / "state.json")
    (place / "use.txt").write_text("4\n3\n")
    (place / "jobs.yaml").write_text("jobs: [{name: a, cloud: aws, region: us-east-1, machine: p4d.24xlarge, work_hours: 2}]")
    (place / "prices.yaml").write_text(
        "cloud: aws\nsources: {ours: {citation: the contract of May, as_of: 2026-11-21, verified: true}}\n"
        'discounts: [{capacity_type: reserved, percent: "40", source: ours}]\n'
    )
    return place


def with_the_guides_tpus(place: Path) -> None:
    """The stack prod-gke of a reader who has the pool of TPU slices that the guide shows, for a class of work with JAX."""
    guide = site_pages.documents()["guides/gke.md"].read_text(encoding="utf-8")
    [pool] = [yaml.safe_load(line) for line in guide.splitlines() if line.startswith("      - {name: v5e-16")]
    path = place / "stacks" / "Pulumi.prod-gke.yaml"
    stack = yaml.safe_load(path.read_text(encoding="utf-8"))
    settings = stack["config"]["flexspot:platform"]
    settings["pools"] += pool
    settings["classes"]["jax"] = own_class("jax", capacity=["flex-start"], checkpoint=True)
    next(each for each in settings["teams"] if each["name"] == "nlp")["shares"]["v5e-16"] = 16
    path.write_text(yaml.safe_dump(stack), encoding="utf-8")


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Return a folder to put first on PATH: the command of this checkout, and a Helm that renders one chart."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name, text in {
        "flexspot": f'exec {sys.executable} -m flexspot "$@"',
        "python": f'exec {sys.executable} "$@"',
        "helm": "cat charts/rendered.yaml",
    }.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    return folder


def ran(said: str, folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Return the result of a line. A shell runs it, unless it is `flexspot` alone: its processes start with their libraries loaded."""
    words = shlex.split(said)
    if words[0] == "flexspot" and not {"|", ">"} & set(words):
        return flexspot(*words[1:], folder=folder, environment=environment)
    command = [shutil.which("bash") or "bash", "-o", "pipefail", "-c", said]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted({each.page for each in SHOWN if runs_here(each)}))
def test_the_lines_of_a_page_work_as_they_are_written(page: str, checkout: Path, programs: Path) -> None:
    if page == "guides/gke.md":
        with_the_guides_tpus(checkout)
    own = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "160"}
    folder = checkout
    for each in (each for each in SHOWN if each.page == page and runs_here(each)):
        said = " ".join(GIVEN.get(word, word) for word in each.said.split(" "))
        if said.startswith("cd "):
            folder /= said.removeprefix("cd ")
            continue
        done = ran(said, folder, {**os.environ, **own})
        assert done.returncode == next((code for word, code in REFUSED.items() if word in said), 0), (each, done.stderr[-2000:])
