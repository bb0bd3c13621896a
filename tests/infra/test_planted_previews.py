"""Previews of a shipped stack with defects: the real program in the real engine, with `flexspot preview --offline`.

test_planted_defects.py tests each defect by itself, without an engine.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from planted_defects import DEFECTS, planted, resources_of

from flexspot.policies.judging import Level
from flexspot.policies.rules import all_rules
from flexspot.policies.values.finding import SHOWN

if TYPE_CHECKING:
    from checkout_fixtures import OwnCheckout

pytestmark = pytest.mark.engine

HERE = Path(__file__).parent
OWN = Path("infra", "flexspot", "infra")

VIOLATION = re.compile(r"- \[(mandatory|advisory)\] \[severity: \w+\]\s+(\S+)\s+\(\S+: (\S+)\)\n\s+[^:\n]+: (?!cannot be decided yet)")
"""A violation as the engine prints it: level, rule, resource. Undecided findings do not match."""

STANDING = {"dev-gke": {("advisory", "budget-nearly-used", "monthly-cost")}}
"""Warnings about a stack without defects. The price of an N1 with T4s is not known, so dev-gke may exceed its budget."""

LEVELS = {rule.name: rule.level for rule in all_rules()}

HUNTER = "hunter2-17x"

PLANTED = "\n\nfrom flexspot.infra.planting import planting\n\nmain = planting(main)\n"


def edits(before: Any, after: Any, path: tuple[str | int, ...] = ()) -> list[dict[str, Any]]:
    """Return `{"path", "value"}` for changed values and `{"path"}` for removed ones. Lists of another length are replaced as a whole."""
    if before == after:
        return []
    if isinstance(before, dict) and isinstance(after, dict):
        old, new = cast("dict[str, Any]", before), cast("dict[str, Any]", after)
        dropped = [{"path": (*path, key)} for key in sorted(old.keys() - new.keys())]
        return [*dropped, *(each for key in sorted(new) for each in edits(old.get(key), new[key], (*path, key)))]
    if isinstance(before, list) and isinstance(after, list):
        listed, wanted = cast("list[Any]", before), cast("list[Any]", after)
        if len(listed) == len(wanted):
            pairs = enumerate(zip(listed, wanted, strict=True))
            return [each for place, (one, other) in pairs for each in edits(one, other, (*path, place))]
    return [{"path": path, "value": after}]


def plant(checkout: OwnCheckout, changed: dict[str, Any]) -> None:
    """Add defects to the checkout's own program."""
    (checkout.folder / "planted.json").write_text(json.dumps(changed))
    shutil.copyfile(HERE / "planting.py", checkout.folder / OWN / "planting.py")
    program = checkout.folder / OWN / "declaring" / "program.py"
    program.write_text(program.read_text() + PLANTED)


@pytest.mark.parametrize("stack", ["dev-eks", "dev-gke"])
def test_a_preview_with_defects_is_stopped_only_by_their_rules(stack: str, checkout: OwnCheckout) -> None:
    defects = [each for each in DEFECTS if each.stack == stack]
    before, after = resources_of(stack), planted(*defects)
    plant(checkout, {name: edits(before[name][1], inputs) for name, (_, inputs) in after.items() if before[name][1] != inputs})

    shown = checkout.flexspot("preview", "-s", stack, "--offline")

    standing = STANDING.get(stack, set())
    wanted = {(LEVELS[each.rule], each.rule, each.on) for each in defects}
    assert len(wanted) > 5
    assert set(VIOLATION.findall(shown.stdout)) - standing == wanted - standing, shown.stdout + shown.stderr
    stopping = [each.rule for each in defects if LEVELS[each.rule] is Level.MANDATORY]
    assert shown.returncode == 1
    assert "would be created" not in shown.stdout
    # The error repeats the first of them.
    assert any(rule in shown.stderr for rule in stopping), shown.stderr


def test_a_secret_of_the_program_is_checked_and_not_shown(checkout: OwnCheckout) -> None:
    path = ("spec", "template", "spec", "nodeClassRef", "name")
    plant(checkout, {"l4-spot-node-pool": [{"path": path, "value": HUNTER, "secret": True}]})

    stopped = checkout.flexspot("preview", "-s", "dev-eks", "--offline")

    printed = stopped.stdout + stopped.stderr
    assert set(VIOLATION.findall(stopped.stdout)) == {("mandatory", "nodepool-references-missing-class", "l4-spot-node-pool")}, printed
    assert f"spec.template.spec.nodeClassRef names EC2NodeClass {SHOWN} of karpenter.k8s.aws" in stopped.stderr
    assert HUNTER not in printed
