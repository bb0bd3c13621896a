"""Programs in TypeScript, compiled and run by Pulumi's host for Node under the real engine, with components over the wire."""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from typing import TYPE_CHECKING

import pulumi
import pytest
from component_calls import as_python_has_them, calls_of_all, on_the_wire
from component_consumers import SECRET_VALUE, TRIED, UNKNOWN_VALUE, declare_shown, declare_tried, of_python, previewed, shown, written
from typescript_consumer import PINS, Expression, call_of, typescript_consumer

from components.gke.gpu_node_pool import GkeGpuNodePool
from components.gke.system_nodes import GkeNodeIdentity

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from typescript_consumer import TypeScriptConsumer

    from lab.tools.build import Tools

pytestmark = pytest.mark.engine

IMPORTS = 'import * as pulumi from "@pulumi/pulumi";\nimport * as flexspot from "@pulumi/flexspot";\n'
CLUSTER = "a-secret-name"
BOTH = {"extends": "./tsconfig.json", "files": ["index.ts", "wrong.ts"]}


@pytest.fixture(scope="module")
def typescript(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TypeScriptConsumer]:
    with typescript_consumer(tools, tmp_path_factory.mktemp("typescript")) as made:
        yield made


def in_typescript() -> str:
    """The calls of the stacks, and a pool of which an input is known once another resource is there, and another one is secret."""
    calls = [call_of(component, written(component)[0], on_the_wire(component, written(component)[1])) for component in TRIED]
    name, identity = written("GkeNodeIdentity")
    pool = on_the_wire("GkeGpuNodePool", written("GkeGpuNodePool")[1])
    pool |= {"cluster": Expression(f'pulumi.secret("{CLUSTER}")'), "serviceAccount": Expression("identity.email")}
    calls.append(f"const identity = {call_of('GkeNodeIdentity', name, on_the_wire('GkeNodeIdentity', identity))}")
    return IMPORTS + "".join(calls) + call_of("GkeGpuNodePool", "of-outputs", pool)


def in_python() -> None:
    declare_tried()
    name, args = written("GkeNodeIdentity")
    identity = GkeNodeIdentity(name, as_python_has_them(GkeNodeIdentity, args))  # pyrefly: ignore[bad-argument-type] -- as told
    pool = as_python_has_them(GkeGpuNodePool, written("GkeGpuNodePool")[1])
    pool |= {"cluster": pulumi.Output.secret(CLUSTER), "service_account": identity.email}
    GkeGpuNodePool("of-outputs", pool)  # pyrefly: ignore[bad-argument-type] -- as told


def test_a_program_in_typescript_makes_the_resources_that_a_program_in_python_makes(typescript: TypeScriptConsumer, tmp_path: Path) -> None:
    said = typescript.preview(in_typescript())

    from_typescript, from_python = previewed(said), of_python(typescript.project, tmp_path, in_python)
    assert len(from_python) > 10
    assert sorted(from_typescript) == sorted(from_python)
    for key, inputs in from_python.items():
        assert from_typescript[key] == inputs, key
    [pool] = [inputs for key, inputs in from_typescript.items() if key.startswith("gcp:container/nodePool:NodePool of-outputs")]
    assert pool["cluster"] == SECRET_VALUE
    assert pool["nodeConfig"]["serviceAccount"] == UNKNOWN_VALUE
    assert CLUSTER not in said.stdout


def test_the_program_of_the_guide_makes_the_resources_that_it_makes_in_python(typescript: TypeScriptConsumer, tmp_path: Path) -> None:
    made = previewed(typescript.preview(shown("typescript")))

    assert made
    assert made == of_python(typescript.project, tmp_path, declare_shown)


def test_the_compiler_takes_a_call_of_every_component_and_refuses_what_is_wrong_by_its_line(typescript: TypeScriptConsumer) -> None:
    calls = [call_of(each, name, on_the_wire(each, args)) for each, made in calls_of_all().items() for name, args in made.items()]
    wrong = (PINS / "wrong.ts").read_text()
    typescript.write({"index.ts": IMPORTS + "".join(calls), "wrong.ts": wrong, "both.json": json.dumps(BOTH)})

    said = typescript.node.tsc(typescript.project.folder, "--pretty", "false", "-p", "both.json")

    expected = {(number, error) for number, line in enumerate(wrong.splitlines(), 1) for error in re.findall(r"// (\d+)$", line)}
    assert len(expected) > 10
    told = re.findall(r"^(\S+)\((\d+),\d+\): error TS(\d+): (.*)", said.stdout, re.MULTILINE)
    assert {(int(line), error) for file, line, error, _ in told if file == "wrong.ts"} == expected, said.stdout
    assert [each for each in told if each[0] != "wrong.ts"] == []


def test_the_sdk_names_the_plugin_and_its_version_and_is_compiled_by_what_it_asks_for(typescript: TypeScriptConsumer) -> None:
    package = json.loads((typescript.sdk / "package.json").read_text())

    assert package["pulumi"] == {"resource": True, "name": "flexspot", "version": version("flexspot")}
    assert package["version"] == version("flexspot")
    asked = package["dependencies"]
    for name, there in (("@pulumi/pulumi", "@pulumi/pulumi"), ("@types/node", "@types/node"), ("typescript", "typescript-of-sdks")):
        pinned = json.loads((typescript.node.packages / there / "package.json").read_text())["version"]
        assert pinned.partition(".")[0] == asked[name].lstrip("^").partition(".")[0], name


def test_what_the_compiler_cannot_know_is_refused_by_the_component_in_a_line_for_each_input(typescript: TypeScriptConsumer) -> None:
    name, args = written("GpuNodePool")
    pool = on_the_wire("GpuNodePool", args) | {"maxNodes": 2.5, "idleSeconds": 0.5}

    said = typescript.preview(IMPORTS + call_of("GpuNodePool", name, pool))

    assert said.returncode != 0
    told = said.stdout.replace("\\n", "\n").splitlines()
    [of_nodes] = [line for line in told if "property maxNodes" in line]
    [of_seconds] = [line for line in told if "property idleSeconds" in line]
    assert of_nodes.endswith("is 2.5; it must be a whole number")
    assert of_seconds.endswith("is 0.5; it must be a whole number")
    assert "Traceback" not in said.stdout + said.stderr
    assert ".py" not in said.stdout + said.stderr
