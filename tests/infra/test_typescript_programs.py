"""Programs in TypeScript, compiled and run by Pulumi's host for Node under the real engine, with components over the wire."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from component_calls import calls_of_all, on_the_wire
from component_consumers import declare_shown, of_python, previewed, shown
from typescript_consumer import PINS, call_of, typescript_consumer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from typescript_consumer import TypeScriptConsumer

    from lab.tools.build import Tools

pytestmark = [pytest.mark.engine, pytest.mark.nightly(held_by="test_the_plugin_answers_with_the_schema_of_the_components")]

IMPORTS = 'import * as pulumi from "@pulumi/pulumi";\nimport * as flexspot from "@pulumi/flexspot";\n'
BOTH = {"extends": "./tsconfig.json", "files": ["index.ts", "wrong.ts"]}


@pytest.fixture(scope="module")
def typescript(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TypeScriptConsumer]:
    with typescript_consumer(tools, tmp_path_factory.mktemp("typescript")) as made:
        yield made


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
