"""An organisation's settings of rules, in a file that its stacks name: for the cluster's API server and for the policy pack of `up`.

Also checks the plan of a stack file: its rules, and other stacks of the same folder in one Google Cloud project.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from flexspot.capacity.plan.build import plan_of_stack_file
from flexspot.capacity.plan.model import PlanWarning
from flexspot.capacity.settings.platform import GkeSettings
from flexspot.capacity.settings.stack_file import lines_of, read_stack_file
from flexspot.capacity.values.errors import ExplainedError, SettingsError, SettingsProblem
from flexspot.policies.judging import DEFAULTS, SUPPRESSIONS
from flexspot.policies.lint.configuration import PACK, read_configuration
from flexspot.policies.rules import all_rules

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from flexspot.capacity.plan.build import StackPlan
    from flexspot.capacity.settings.platform import PlatformSettings
    from flexspot.policies.judging import Settings


SETTING = "admission.rules_file"
"""The setting that names the file."""


def rules_of(settings: PlatformSettings, folder: Path, source: str) -> Settings:
    """Return the rules' settings in the file that `settings` name, relative to `folder`. Rules as shipped if they name none.

    Raises SettingsError naming `source` with all errors of the file: it does not exist, it is not YAML, or it names an unknown rule, level
    or parameter.
    """
    written = settings.admission.rules_file
    if written is None:
        return DEFAULTS
    if not (folder / written).is_file():
        problem = SettingsProblem(SETTING, repr(written), "does not exist", "name a file by its path from the stack file's folder")
        raise SettingsError(source, [problem])
    try:
        return read_configuration(folder / written).settings
    except ExplainedError as error:
        problems = [SettingsProblem(SETTING, repr(written), each, "fix the file; docs/lint.md has an example") for each in error.evidence]
        raise SettingsError(source, problems) from error


def checked_stack(path: Path) -> StackPlan:
    """Return the plan of a stack file whose rules are readable, with warnings about names that it shares with stacks in the same folder.

    Raises the errors of plan_of_stack_file and rules_of, with lines.
    """
    found = plan_of_stack_file(path)
    try:
        rules_of(found.settings, path.parent, path.name)
    except SettingsError as error:
        raise error.with_lines(lines_of(path.read_text(encoding="utf-8"))) from error
    if not isinstance(found.settings, GkeSettings):
        return found
    warnings = (*found.plan.warnings, *_same_teams_elsewhere(path, found.settings))
    return replace(found, plan=replace(found.plan, warnings=warnings))


def rules_in_words(settings: PlatformSettings, folder: Path) -> Iterator[str]:
    """Yield a line for each rule that a stack's own file changes. Raises the errors of rules_of."""
    rules = rules_of(settings, folder, "")
    for rule in all_rules():
        said = [rules.level(rule).value] if rules.level(rule) is not rule.level else []
        said += ["locked"] if rules.locks(rule) else []
        for name, value in rules.values.get(rule.name, {}).items():
            said.append(f"{name}: {', '.join(value) if isinstance(value, tuple) else value}")
        said += [f"accepted for {each.objects}" for each in rules.suppressions if each.rule == rule.name]
        if said:
            yield f"rule {rule.name}: {'; '.join(said)}"


def pack_configuration(stack_file: Path, folder: Path) -> Path | None:
    """Write the policy pack's configuration from the file that a stack names into `folder`. Return None if it names no file.

    Rules about the text of a file are only for lint, and left out. Raises ExplainedError for an unusable file.
    """
    named = read_stack_file(stack_file).admission.rules_file
    if named is None:
        return None
    written, known = read_configuration(stack_file.parent / named).rules, {rule.name for rule in all_rules()}
    rules = {key: value for key, value in written.items() if key in known}
    rules[SUPPRESSIONS] = [each for each in written.get(SUPPRESSIONS) or () if each["rule"] in known]
    path = folder / "policy-pack-config.json"
    # JSON has no dates: a day becomes a string.
    path.write_text(json.dumps({PACK: rules}, default=str), encoding="utf-8")
    return path


def _same_teams_elsewhere(path: Path, settings: GkeSettings) -> Iterator[PlanWarning]:
    """Yield a warning for each other stack file in the folder that has teams of the same names in the same project.

    A project has one pool of workload identities. In it, a pod is identified by its namespace and its service account, whatever its
    cluster. IAM grants to `ads/workloads` of one cluster also apply to the other's, by principal:// or by an account that it may act as
    (https://docs.cloud.google.com/kubernetes-engine/docs/concepts/workload-identity, identity sameness; read 2026-11-25). An unreadable
    file is skipped: its own check reports the reason.
    """
    own = {team.name for team in settings.teams}
    for neighbour in sorted(path.parent.glob("Pulumi.*.yaml")):
        if neighbour == path:
            continue
        try:
            other = read_stack_file(neighbour)
        except (SettingsError, OSError):
            continue
        if not isinstance(other, GkeSettings) or other.project != settings.project:
            continue
        if both := sorted(own & {team.name for team in other.teams}):
            text = (
                f"{', '.join(both)}: teams of {neighbour.name} in the same project, where pods of one team name are one identity, "
                "whatever their cluster, and reach each other's checkpoints, datasets and work queue; give one of the stacks a project "
                "of its own"
            )
            yield PlanWarning("teams-in-two-clusters-of-a-project", "project", text)
