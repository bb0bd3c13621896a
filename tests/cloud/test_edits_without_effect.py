"""On a cluster or in a network that is there already, an edit of a setting either changes something or is told."""

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
"""What `flexspot images` and `flexspot versions` go by, which reaches no resource on a cluster that is there."""

STACK_OF = {cloud: stacks[0] for cloud, stacks in STACKS_OF.items()}
LEAST_TOLD = 3
"""So many settings of each must be told, or the test has looked at none."""

SECTIONS = ("network", "control_plane", "cluster")


def based(stack: str, somebodys: dict[str, Any]) -> dict[str, Any]:
    """A shipped stack on somebody else's part, without what is refused beside it."""
    settings = shipped(stack)
    for section, written in somebodys.items():
        settings[section] = {**settings.get(section, {}), **written}
    if "cluster" in somebodys:
        settings["cluster"].pop("deletion_protection", None)
    return settings


def made(stack: str, settings: dict[str, Any]) -> str:
    """Everything that the program declares, as text."""
    return _made(stack, json.dumps(settings))


@cache
def _made(stack: str, settings: str) -> str:
    declarations = declared(stack, json.loads(settings)).made
    return json.dumps({name: [each.inputs, each.protected, each.provider] for name, each in declarations.items()}, sort_keys=True)


def told_of(settings: dict[str, Any]) -> set[str]:
    """The settings that are called without effect."""
    stack = STACK_OF[settings["cloud"]]
    parsed = parse_settings(settings, stack)
    plan = build_plan(parsed, stack, price_book_of(parsed, STACKS, stack), image_book_of(parsed, STACKS, stack))
    return {each.path for each in plan.warnings if each.rule == "setting-of-existing-part"}


def within(setting: str, paths: Iterable[str]) -> bool:
    return any(setting == path or setting.startswith(f"{path}.") for path in paths)


def edited(settings: dict[str, Any], edit: Edit, path: str = "") -> dict[str, Any] | None:
    """The settings with an edit, or with what it writes at `path` alone; None where it is of nothing that is here, or refused."""
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
            pytest.param(each, marks=pytest.mark.nightly(held_by="test_every_edit_changes_something_or_is_told"))
            for each in SOMEBODYS
            if each != "a VPC"
        ),
    ],
)
def test_every_edit_changes_something_or_is_told(somebodys: str) -> None:
    """Edits that are told are played together, and each other one alone: of what has settings below it, one of those."""
    cloud, written = SOMEBODYS[somebodys]
    own = {f"{section}.{name}" for section, names in written.items() for name in names}
    before = based(STACK_OF[cloud], written)
    together, told, silent = copy.deepcopy(before), set[str](), list[str]()
    seen = set[str]()
    for path in (each.path for each in settings_of(cloud)):
        if path.split(".")[0] not in (SECTIONS if "cluster" in written else ("network",)) or path in OF_COMMANDS | own:
            continue
        for edit in edits_of(cloud, path)[:1] if edits_of(cloud, path) else ():
            alone = edited(before, edit)
            if alone is None or edit.stack != STACK_OF[cloud]:
                continue
            if within(path, told_of(alone) | told_of(before)):
                with_it = edited(together, edit, path)
                told |= {path} if with_it else set()
                together = with_it or together
            elif (part := ".".join(path.split(".")[:2])) not in seen:
                seen.add(part)
                silent += [edit.words] if made(STACK_OF[cloud], alone) == made(STACK_OF[cloud], before) else []

    assert silent == [], "they change nothing, and nobody says so"
    assert len(told) >= LEAST_TOLD, told
    assert made(STACK_OF[cloud], together) == made(STACK_OF[cloud], before), f"one of {sorted(told)} changes something"
