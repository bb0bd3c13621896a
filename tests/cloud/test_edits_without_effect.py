"""On an existing cluster or network, an edit of a setting either changes something or is reported as without effect."""

from __future__ import annotations

import copy
import json
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from program_declarations import STACKS, declared, shipped
from setting_edits import STACKS_OF, edits_of, refusal_of, settings_of, write

from flexspot.capacity.plan.build import build_plan, image_book_of, price_book_of
from flexspot.capacity.settings.stack_file import parse_settings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from setting_edits import Edit

pytestmark = pytest.mark.slow

SUBNETS = [f"subnet-0a1b2c3d4e5f6071{number}" for number in range(3)]
SOMEBODYS: dict[str, tuple[str, dict[str, Any]]] = {
    "a cluster of EKS": ("eks", {"cluster": {"existing": "theirs"}}),
    "a cluster of GKE": ("gke", {"cluster": {"existing": "theirs"}}),
    "a VPC": ("eks", {"network": {"existing_vpc": "vpc-0a1b2c3d4e5f60718", "existing_private_subnets": SUBNETS}}),
    "a network": ("gke", {"network": {"existing_network": "shared", "existing_subnetwork": "gpu-nodes"}}),
}

OF_COMMANDS = frozenset({"cluster.version"})
"""Settings that only `flexspot images` and `flexspot versions` read. They affect no resource on an existing cluster."""

STACK_OF = {cloud: stacks[0] for cloud, stacks in STACKS_OF.items()}
LEAST_REPORTED = 3
"""Least number of settings that each case must report, so that the test cannot pass without looking at any."""

SECTIONS = ("network", "control_plane", "cluster")


def based(stack: str, somebodys: dict[str, Any]) -> dict[str, Any]:
    """Return a shipped stack on an existing network or cluster, without the settings that then are refused."""
    settings = shipped(stack)
    for section, written in somebodys.items():
        settings[section] = {**settings.get(section, {}), **written}
    if "cluster" in somebodys:
        settings["cluster"].pop("deletion_protection", None)
    return settings


def declared_text(stack: str, settings: dict[str, Any]) -> str:
    """Return everything that the program declares, as text."""
    return _made(stack, json.dumps(settings))


@cache
def _made(stack: str, settings: str) -> str:
    declarations = declared(stack, json.loads(settings)).made
    return json.dumps({name: [each.inputs, each.protected, each.provider] for name, each in declarations.items()}, sort_keys=True)


def reported_settings(settings: dict[str, Any]) -> set[str]:
    """Return the settings that are reported as without effect."""
    stack = STACK_OF[settings["cloud"]]
    parsed = parse_settings(settings, stack)
    plan = build_plan(parsed, stack, price_book_of(parsed, STACKS, stack), image_book_of(parsed, STACKS, stack))
    return {each.path for each in plan.warnings if each.rule == "setting-of-existing-part"}


def within(setting: str, paths: Iterable[str]) -> bool:
    return any(setting == path or setting.startswith(f"{path}.") for path in paths)


def edited(settings: dict[str, Any], edit: Edit, path: str = "") -> dict[str, Any] | None:
    """Return the settings with an edit, or only with its value at `path`. None if it does not apply here, or is refused."""
    changed = copy.deepcopy(settings)
    try:
        for place, value in (*edit.base, *edit.writes):
            if within(".".join(map(str, place)), [path] if path else [str(place[0])]):
                write(changed, place, value)
    except (KeyError, IndexError, TypeError):
        return None
    return None if changed == settings or refusal_of(STACK_OF[settings["cloud"]], changed) else changed


@pytest.mark.parametrize(
    "somebodys",
    [
        "a VPC",
        *(
            pytest.param(each, marks=pytest.mark.nightly(tested_by="test_every_edit_changes_something_or_is_reported"))
            for each in SOMEBODYS
            if each != "a VPC"
        ),
    ],
)
def test_every_edit_changes_something_or_is_reported(somebodys: str) -> None:
    """Reported edits are applied together, and the others one by one. Of a setting with settings below it, only one of those is edited."""
    cloud, written = SOMEBODYS[somebodys]
    own = {f"{section}.{name}" for section, names in written.items() for name in names}
    before = based(STACK_OF[cloud], written)
    together, reported, silent = copy.deepcopy(before), set[str](), list[str]()
    seen = set[str]()
    for path in (each.path for each in settings_of(cloud)):
        if path.split(".")[0] not in (SECTIONS if "cluster" in written else ("network",)) or path in OF_COMMANDS | own:
            continue
        for edit in edits_of(cloud, path)[:1] if edits_of(cloud, path) else ():
            alone = edited(before, edit)
            if alone is None or edit.stack != STACK_OF[cloud]:
                continue
            if within(path, reported_settings(alone) | reported_settings(before)):
                with_it = edited(together, edit, path)
                reported |= {path} if with_it else set()
                together = with_it or together
            elif (part := ".".join(path.split(".")[:2])) not in seen:
                seen.add(part)
                silent += [edit.words] if declared_text(STACK_OF[cloud], alone) == declared_text(STACK_OF[cloud], before) else []

    assert silent == [], "they change nothing, without a warning"
    assert len(reported) >= LEAST_REPORTED, reported
    assert declared_text(STACK_OF[cloud], together) == declared_text(STACK_OF[cloud], before), f"one of {sorted(reported)} has an effect"
