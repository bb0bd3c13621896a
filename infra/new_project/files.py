"""The files of a new project, and how they are written: all of them fit together, and nothing that is there is touched."""

from __future__ import annotations

import json
import re
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from capacity.catalog.platform import Platform
from capacity.cost.costed_plan import costed, shipped_use
from capacity.cost.plan_cost import plan_cost
from capacity.settings.stack_schema import stack_file_schema
from capacity.values.errors import ExitCode, ExplainedError, SettingsError
from infra.new_project.deploying import deploying
from infra.new_project.stack_files import cloud_stack, flow, lab_stack
from infra.rules import checked_stack

if TYPE_CHECKING:
    from collections.abc import Mapping
    from decimal import Decimal

    from infra.new_project.answers import Answers

_TEMPLATES = Path(__file__).with_name("templates")
_PLACE = re.compile(r"<<(\w+)>>")

RULES = "flexspot-lint.yaml"

SHARED = ("README.md", ".gitignore")
"""Files that a folder may have already, and that stay as they are there."""


@dataclass(frozen=True)
class Written:
    """What was written, and what was there already and is as it was."""

    made: tuple[str, ...]
    kept: tuple[str, ...]


def project_files(answers: Answers) -> dict[str, str]:
    """Every file of the project, by its path. Raises ExplainedError for answers whose stacks cannot work."""
    shown = {
        "name": flow(answers.name),
        "owner": answers.owner,
        "version": version("flexspot"),
        "pulumi": version("pulumi"),
        "teams": ", ".join(answers.teams),
    }
    files = {
        "Pulumi.yaml": _filled("project.yaml", shown),
        "__main__.py": _filled("program.txt", shown),
        "requirements.txt": _filled("requirements.txt", shown),
        RULES: _filled("rules.yaml", shown),
        ".gitignore": _filled("gitignore.txt", shown),
        ".pre-commit-config.yaml": _filled("pre-commit.yaml", shown),
        ".github/workflows/flexspot.yaml": _filled("workflow.yaml", shown),
        "stacks/platform.schema.json": json.dumps(stack_file_schema(), indent=2) + "\n",
    }
    stacks = _stacks(answers, files[RULES])
    rows = "\n".join(f"| `{name}` | {_about(answers, name)} |" for name in stacks)
    first = next(iter(stacks))
    told = shown | {"name": answers.name, "stacks": rows, "first": first, "deploying": deploying(answers, shown["pulumi"])}
    return files | {f"stacks/Pulumi.{name}.yaml": text for name, text in stacks.items()} | {"README.md": _filled("readme.md", told)}


def write_project(folder: Path, files: Mapping[str, str]) -> Written:
    """Writes the files into `folder`, which is made where it is not there.

    What is there stays: of README.md and .gitignore nothing more is said than that; for any other nothing at all is written. Raises
    ExplainedError then, and where a file cannot be written.
    """
    # A link counts, whatever it leads to.
    there = [name for name in files if (folder / name).exists() or (folder / name).is_symlink()]
    if taken := [name for name in there if name not in SHARED]:
        raise ExplainedError(
            f"{folder} has {', '.join(taken)} already; nothing was written.",
            "name another folder, or move these away.",
            exit_code=ExitCode.BAD_USAGE,
        )
    made: list[str] = []
    for name, text in files.items():
        if name in there:
            continue
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Not over what another process has made meanwhile.
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise ExplainedError(
                f"{path} cannot be written: {error.strerror}. Written before it: {', '.join(made) or 'nothing'}.",
                "name a folder that is yours and has room.",
                exit_code=ExitCode.BAD_USAGE,
            ) from error
        made.append(name)
    return Written(tuple(made), tuple(there))


def _stacks(answers: Answers, rules: str) -> dict[str, str]:
    """The stack files by stack, each tried as `settings check` would."""
    if answers.cloud is Platform.LOCAL:
        found: dict[str, str] = {}
    else:
        found = {name: _with_budget(answers, name, rules) for name in ("dev", "prod")}
    found["local"] = lab_stack(answers)
    _worst_usd(found["local"], "local", rules)
    return found


def _with_budget(answers: Answers, name: str, rules: str) -> str:
    worst = _worst_usd(cloud_stack(answers, name, None), name, rules)
    text = cloud_stack(answers, name, None if worst is None else _rounded_up(worst))
    _worst_usd(text, name, rules)
    return text


def _worst_usd(text: str, name: str, rules: str) -> Decimal | None:
    """What a stack costs a month at worst; None where a price is not known. Raises ExplainedError for one that cannot work."""
    with tempfile.TemporaryDirectory() as folder:
        stack = Path(folder) / "stacks" / f"Pulumi.{name}.yaml"
        stack.parent.mkdir()
        stack.write_text(text, encoding="utf-8")
        (Path(folder) / RULES).write_text(rules, encoding="utf-8")
        try:
            found = checked_stack(stack)
        except SettingsError as error:
            raise ExplainedError(
                f"these answers make no stack {name} that can work; nothing was written.",
                "answer otherwise where a line names what you gave: --machine, --region, --zone, --cidr, --team or the number of GPUs.",
                exit_code=ExitCode.BAD_USAGE,
                evidence=tuple(map(str, error.problems)),
            ) from error
    cost = plan_cost(costed(found.plan), found.prices, shipped_use())
    return None if cost.unknown else cost.total.worst_usd


def _rounded_up(usd: Decimal) -> int:
    """To two digits and zeros."""
    whole = int(usd) + 1
    step = 10 ** max(0, len(str(whole)) - 2)
    return -(-whole // step) * step


def _about(answers: Answers, stack: str) -> str:
    if stack == "local":
        return "the lab on this machine: fake nodes, real decisions"
    gpus = answers.dev_gpus if stack == "dev" else answers.prod_gpus
    more = ", and on demand one machine a team" if stack == "prod" and answers.described_machine.on_demand else ""
    return f"{answers.cloud.value.upper()} in {answers.region}, at most {gpus} GPUs on Spot{more}"


def _filled(template: str, values: Mapping[str, str]) -> str:
    text = (_TEMPLATES / template).read_text(encoding="utf-8")
    return _PLACE.sub(lambda found: values[found[1]], text)
