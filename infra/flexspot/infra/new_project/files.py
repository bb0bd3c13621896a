"""The files of a new project, which fit together, and how they are written without touching existing files.

The README lists the commands for the prerequisites of `up`: official programs, an account, a backend, quotas.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.platform import Platform
from flexspot.capacity.cost.costed_plan import costed, shipped_use
from flexspot.capacity.cost.plan_cost import plan_cost
from flexspot.capacity.settings.stack_schema import stack_file_schema
from flexspot.capacity.values.errors import ExitCode, ExplainedError, SettingsError
from flexspot.infra.declaring.rules import checked_stack
from flexspot.infra.deployment.prerequisites import plugin_command, plugins_of, sdk_version
from flexspot.infra.new_project.stack_files import cloud_stack, flow, lab_stack

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from decimal import Decimal

    from flexspot.capacity.plan.build import StackPlan
    from flexspot.infra.new_project.answers import Answers, CodeHost


_TEMPLATES = Path(__file__).with_name("templates")
_PLACE = re.compile(r"<<(\w+)>>")

RULES = "flexspot-lint.yaml"

SHARED = ("README.md", ".gitignore")
"""Files that may exist already and are then left unchanged."""


@dataclass(frozen=True)
class NewProject:
    """The files of a project by path, and warnings about its stacks."""

    files: Mapping[str, str]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Written:
    """The result of writing a project."""

    made: tuple[str, ...]
    """New files."""
    kept: tuple[str, ...]
    """Files that existed already and were left unchanged."""


_TEMPLATE_OF = {
    "Pulumi.yaml": "project.yaml",
    "__main__.py": "program.txt",
    "requirements.txt": "requirements.txt",
    RULES: "rules.yaml",
    ".gitignore": "gitignore.txt",
    ".pre-commit-config.yaml": "pre-commit.yaml",
}


_WORKFLOWS: Mapping[CodeHost, tuple[str, str]] = {
    "github": (".github/workflows/flexspot.yaml", "workflow.yaml"),
    "gitlab": (".gitlab-ci.yml", "gitlab.yaml"),
}
"""The workflow that checks changes, and its template."""

_SCHEMA = "stacks/platform.schema.json"


def usual_files(host: CodeHost) -> tuple[str, ...]:
    """Return the files that every project on this host has."""
    return (*_TEMPLATE_OF, _WORKFLOWS[host][0], _SCHEMA, "stacks/Pulumi.local.yaml")


def refuse_existing_files(folder: Path, names: Iterable[str]) -> None:
    """Raise ExplainedError if these files of a project cannot be created in `folder`.

    That is so if one that is not SHARED exists already, also as a link to anything, or if something other than a folder is at the path of
    their folder.
    """
    paths = {name: folder / name for name in names}
    above = sorted({each for path in paths.values() for each in path.parents})
    if blocking := [each for each in above if os.path.lexists(each) and not each.is_dir()]:
        raise ExplainedError(
            f"{blocking[0]} is not a folder, but files of the project must be in it. Nothing was written.",
            "name another folder, or move that file.",
            exit_code=ExitCode.BAD_USAGE,
        )
    if taken := [name for name, path in paths.items() if name not in SHARED and os.path.lexists(path)]:
        raise ExplainedError(
            f"{folder} already contains {', '.join(taken)}. Nothing was written.",
            "name another folder, or move these files.",
            exit_code=ExitCode.BAD_USAGE,
        )


def project_files(answers: Answers) -> NewProject:
    """Return the files of the project. Raises ExplainedError for answers whose stacks cannot work."""
    shown = {
        "name": flow(answers.name),
        "owner": answers.owner,
        "version": version("flexspot"),
        "requirement": _requirement(answers, version("flexspot")),
        "pulumi": str(sdk_version()),
        "teams": ", ".join(answers.teams),
        "judge": _WORKFLOWS[answers.host][0],
    }
    files = {name: _filled(template, shown) for name, template in (*_TEMPLATE_OF.items(), _WORKFLOWS[answers.host])}
    files[_SCHEMA] = json.dumps(stack_file_schema(), indent=2) + "\n"
    stacks, warnings = _checked_stacks(answers, files[RULES])
    rows = "\n".join(f"| `{name}` | {_about(answers, name)} |" for name in stacks)
    first = next(iter(stacks))
    values = shown | {"name": answers.name, "stacks": rows, "first": first, "deploying": _deploying(answers, shown["pulumi"])}
    files |= {_stack_file(name): text for name, text in stacks.items()}
    return NewProject(files | {"README.md": _filled("readme.md", values)}, warnings)


def write_project(folder: Path, files: Mapping[str, str]) -> Written:
    """Write the files into `folder`, which is created if necessary.

    An existing README.md or .gitignore is kept. If any other file exists, nothing is written. Raises ExplainedError then, and if a file
    cannot be written.
    """
    refuse_existing_files(folder, files)
    there = [name for name in files if os.path.lexists(folder / name)]
    made: list[str] = []
    for name, text in files.items():
        if name in there:
            continue
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # "x" does not overwrite a file that another process has created meanwhile.
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise ExplainedError(
                f"{path} cannot be written: {error.strerror}. Files written before: {', '.join(made) or 'none'}.",
                "name a writable folder with free space.",
                exit_code=ExitCode.BAD_USAGE,
            ) from error
        made.append(name)
    return Written(tuple(made), tuple(there))


def _stack_file(name: str) -> str:
    return f"stacks/Pulumi.{name}.yaml"


def _checked_stacks(answers: Answers, rules: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the stack files by stack, checked together as by `settings check`, and their warnings.

    A budget is added after the check: the worst-case cost of the same stack.
    """
    clouds = () if answers.cloud is Platform.LOCAL else ("dev", "prod")
    tried = {name: cloud_stack(answers, name, None) for name in clouds} | {"local": lab_stack(answers)}
    with tempfile.TemporaryDirectory() as written:
        folder = Path(written)
        (folder / "stacks").mkdir()
        (folder / RULES).write_text(rules, encoding="utf-8")
        for name, text in tried.items():
            (folder / _stack_file(name)).write_text(text, encoding="utf-8")
        found = {name: _tried(folder, name, answers.cloud) for name in tried}
    budgets = {name: _worst_usd(found[name]) for name in clouds}
    stacks = {name: cloud_stack(answers, name, None if usd is None else _rounded_up(usd)) for name, usd in budgets.items()}
    warnings = (f"stack {name}: {each.rule}: {each.path}: {each.text}" for name, stack in found.items() for each in stack.plan.warnings)
    return tried | stacks, tuple(warnings)


def _tried(folder: Path, name: str, cloud: Platform) -> StackPlan:
    try:
        return checked_stack(folder / _stack_file(name))
    except SettingsError as error:
        given = ["--owner", "--team"]
        given += [] if cloud is Platform.LOCAL else ["--account", "--prod-account", "--region", "--zone", "--machine"]
        given += ["--cidr"] if cloud is Platform.EKS else []
        raise ExplainedError(
            f"stack {name} cannot work with these answers. Nothing was written.",
            f"change the answers that the lines above mention: {', '.join(given)}.",
            exit_code=ExitCode.BAD_USAGE,
            evidence=tuple(map(str, error.problems)),
        ) from error


def _worst_usd(stack: StackPlan) -> Decimal | None:
    """Return the worst-case monthly cost of a stack. None if a price is not known."""
    cost = plan_cost(costed(stack.plan), stack.prices, shipped_use())
    return None if cost.unknown else cost.total.worst_usd


def _rounded_up(usd: Decimal) -> int:
    """Return the amount rounded up to two significant digits."""
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


_LOGINS = {Platform.GKE: "gcloud auth application-default login", Platform.EKS: "aws sso login"}


def _requirement(answers: Answers, version: str) -> str:
    """Return the project's requirement of this version of Flexspot, with the libraries for its stacks."""
    return f"flexspot[{'platform' if answers.cloud is Platform.LOCAL else answers.cloud}]=={version}"


def commands(answers: Answers) -> list[str]:
    """Return the commands to run before the first `up` of a cloud's stack. Empty for a project with only a lab."""
    if answers.cloud is Platform.LOCAL:
        return []
    return [*map(plugin_command, plugins_of(answers.cloud)), _LOGINS[answers.cloud], "pulumi login", "flexspot settings needs -s dev"]


def reach(answers: Answers) -> str:
    """Return a sentence on the networks from which `up` reaches its clusters."""
    if answers.cloud is Platform.GKE:
        return "Clusters are reached by their DNS endpoint from anywhere; Google's IAM decides who gets in."
    public = "" if not answers.cidrs else f" Development is reached from {', '.join(answers.cidrs)} as well."
    return f"Clusters are private: `up` needs a runner inside their network (`network.existing_vpc` takes one that you have).{public}"


def _deploying(answers: Answers, pulumi: str) -> str:
    """Return the README's section about deploying. Empty for a project with only a lab."""
    listed = "".join(f"    {each}\n" for each in commands(answers))
    if not listed:
        return ""
    return (
        f"## Deploying\n\n`up` needs Pulumi {pulumi} or later with its plugins, credentials, a backend for the state, and quota for GPUs; "
        f"the last command\nlists what to ask the cloud for:\n\n{listed}\nThen:\n\n    flexspot up -s dev\n\n{reach(answers)}\n\n"
    )
