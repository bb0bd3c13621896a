"""The effect of every edit of every setting on its stack, as tables by cloud and section, reviewed as snapshots and shown in guides.

A test rewrites the tables, and the guides' parts, with FLEXSPOT_REWRITE_SNAPSHOTS=1.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from engine_steps import Operation, Run, steps
from google_models import refused_requests
from program_declarations import declared, id_of, shipped
from setting_edits import edits_of, settings_of, without_edit

from flexspot.capacity.values.engine_marks import UNKNOWN_TEXT
from flexspot.capacity.values.names import is_production
from flexspot.infra.deployment.api_refusals import InputChange, refusals
from flexspot.infra.deployment.losses import HeldKind, Loss, held, refusal

if TYPE_CHECKING:
    from engine_steps import Step
    from program_declarations import Declarations, Declared
    from setting_edits import Edit

SNAPSHOTS = Path(__file__).with_name("snapshots")

Row = dict[str, Any]


@cache
def deployed(stack: str) -> Declarations:
    """Return a shipped stack as deployed."""
    return declared(stack, shipped(stack), there=True)


_BASES: dict[tuple[str, str], Declarations] = {}
"""Stacks that differ from the shipped ones, by the difference, as several edits start from the same one."""


def _before(edit: Edit) -> Declarations:
    key = (edit.stack, repr(edit.base))
    if not edit.base:
        return deployed(edit.stack)
    if key not in _BASES:
        _BASES[key] = declared(edit.stack, edit.before(), there=True)
    return _BASES[key]


def row_of(edit: Edit) -> Row:
    """Return the effect of an edit on the stack, and that of reverting it."""
    before, after = _before(edit), declared(edit.stack, edit.applied(), there=True)
    production = is_production(edit.stack.partition("-")[0])
    # Google's own descriptions of its APIs judge here, because all edits pass through this function.
    unknown = refused_requests(after.made.values())
    run = steps(before, after)
    return {
        "edit": edit.words,
        "kind": edit.kind,
        "stack": edit.stack,
        "does": outcome(run, before, after, production=production),
        "back": outcome(steps(after, before), after, before, production=production),
        **({"changes in place": changed} if (changed := changed_objects(edit, run, after)) else {}),
        **({"no API has": sorted(unknown)} if unknown else {}),
    }


CHANGED_OFTEN = ("classes", "cohorts", "teams")
"""Sections of the settings that only create Kubernetes objects and are edited while work runs."""


def changed_objects(edit: Edit, run: Run, after: Declarations) -> list[str]:
    """Of these sections the fields of Kubernetes objects that an edit changes in place, as `Kind path`.

    A model cannot say what an API server refuses to change: tests/lab/test_cluster_made_objects.py asks one for each field.
    """
    if _section(edit.setting) not in CHANGED_OFTEN:
        return []
    changed = [
        (after.made[step.name].inputs["kind"], path)
        for step in run.of(Operation.UPDATE)
        if step.kind.startswith("kubernetes:") and "kind" in after.made[step.name].inputs
        for path in step.paths
    ]
    # The index in a list, and the key in a map of names, make no difference to the server.
    return sorted({f"{kind} {_fields(path)}" for kind, path in changed})


_LEVELS = 3


def _fields(path: str) -> str:
    return ".".join(re.sub(r"\[[^]]*\]", "", path).split(".")[:_LEVELS])


def outcome(run: Run, before: Declarations, after: Declarations, *, production: bool = True) -> Row:
    """Summarize a run: stateful resources that are lost, the number of others created, changed and deleted, and the refusing rule."""
    row: Row = {}
    for operation in (Operation.REPLACE, Operation.DELETE):
        lost = run.of(operation)
        if holding := sorted({held_name(each, before) for each in lost if _held(each, before)}):
            row[f"{operation.value}s"] = _shortened(holding)
        if others := Counter(each.kind for each in lost if not _held(each, before)):
            row[f"also {operation.value}s"] = _counted(others)
    if made := Counter(each.kind for each in run.of(Operation.CREATE)):
        row["creates"] = _counted(made)
    if changed := Counter(each.kind for each in run.of(Operation.UPDATE)):
        row["updates"] = sum(changed.values())
    if production and (asked := confirmations_of(run, before)):
        row["production asks leave for"] = asked
    if run.refused:
        row["preview refuses for"] = sorted(each.partition(" ")[2] for each in run.refused)
    if refused := refusals_of(run, before, after):
        row["the cloud refuses"] = refused
    return row


def confirmations_of(run: Run, before: Declarations) -> int:
    """Return the number of losses that `up` asks to confirm in production, by the code that asks."""
    losses = [
        Loss(
            f"{resource.parent.partition(' ')[0]}${resource.type}",
            resource.name,
            replaced=each.operation is Operation.REPLACE,
            protected=resource.inputs.get("deletionProtection") is True,
        )
        for each in run.lost
        for resource in [before.made[each.name]]
        if _held(each, before)
    ]
    refused = refusal(losses, [], production=True)
    return 0 if refused is None else sum(1 for each in losses if each.needs_permission)


def _held(step: Step, declarations: Declarations) -> HeldKind | None:
    resource = declarations.made[step.name]
    # A URN contains all parent types. The nearest one is enough.
    return held(f"{resource.parent.partition(' ')[0]}${resource.type}")


def refusals_of(run: Run, before: Declarations, after: Declarations) -> list[str]:
    """Return the rules by which the clouds refuse a step of a run."""
    steps_by_name = {step.name: step for step in run.steps}
    gone = {id_of(step.name) for step in run.lost}

    def known(new: Declared) -> dict[str, Any]:
        # A replaced resource gets another id, which is not known before.
        return {key: UNKNOWN_TEXT if isinstance(value, str) and value in gone else value for key, value in new.inputs.items()}

    changes = [
        InputChange(
            (old or new).type,  # pyrefly: ignore[missing-attribute] -- one of both is there
            name,
            old.inputs if old else None,
            known(new) if new else None,
            id_of(name),
            replaced=bool(step and step.operation is Operation.REPLACE),
            gone_first=bool(step and step.first),
        )
        for name in dict.fromkeys((*before.made, *after.made))
        for old, new, step in [(before.made.get(name), after.made.get(name), steps_by_name.get(name))]
    ]
    return sorted({each.rule for each in refusals(changes) if each.certain})


def held_name(step: Step, declarations: Declarations) -> str:
    """Return a stateful resource's name in the table: its type, and its name in the program."""
    return f"{_held(step, declarations)} {step.name.partition(' ')[2]}"


def _shortened(names: list[str]) -> list[str]:
    """Abbreviate names by type. Many of one kind become a count."""
    kinds = Counter(each.partition(" ")[0] for each in names)
    few = 3
    kept = [each for each in names if kinds[each.partition(" ")[0]] <= few]
    return sorted([*kept, *(f"{kind} x {count}" for kind, count in kinds.items() if count > few)])


def _counted(kinds: Counter[str]) -> Any:
    """Return types with their counts. Very many types become one total."""
    many = 8
    if len(kinds) > many:
        return sum(kinds.values())
    return {kind: kinds[kind] for kind in sorted(kinds)}


def sections(cloud: str) -> tuple[str, ...]:
    """Return the top-level settings of a cloud. Each has its own table, so that several can run in parallel."""
    return tuple(dict.fromkeys(_section(setting.path) for setting in settings_of(cloud)))


def _section(path: str) -> str:
    return path.partition(".")[0]


def snapshot_of(cloud: str, section: str) -> Path:
    """Return the path of a section's reviewed table."""
    return SNAPSHOTS / f"changes-{cloud}" / f"{section}.yaml"


def table(cloud: str, section: str) -> dict[str, Any]:
    """Return all rows of a section by setting."""
    paths = [setting.path for setting in settings_of(cloud) if _section(setting.path) == section]
    return {path: without_edit(cloud).get(path) or [row_of(edit) for edit in edits_of(cloud, path)] for path in paths}


def text_of(rows: dict[str, Any]) -> str:
    """Return the snapshot's text."""
    return yaml.safe_dump(rows, sort_keys=False, width=200, allow_unicode=True)


def reviewed(cloud: str) -> dict[str, Any]:
    """Return all sections as they were reviewed."""
    return {path: edits for section in sections(cloud) for path, edits in _reviewed(snapshot_of(cloud, section)).items()}


def _reviewed(path: Path) -> dict[str, Any]:
    return yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader) if path.is_file() else {}
