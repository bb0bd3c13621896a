"""The first preview of a shipped stack with one defect in it: the real program in the real engine, by `flexspot preview --offline`."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from planted_defects import JOB, Defect, job, planted
from planted_table import EVERY_DEFECT, shared_previews
from resource_edits import edits

from policies.judging import Level
from policies.rules import all_rules
from policies.values.secrecy import SHOWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from checkout_fixtures import OwnCheckout

pytestmark = pytest.mark.engine

HERE = Path(__file__).parent

TOLD = re.compile(r"- \[(mandatory|advisory)\] \[severity: \w+\]\s+(\S+)\s+\(\S+: (\S+)\)\n\s+[^:\n]+: (?!cannot be decided yet)")
"""A violation as the engine prints it: level, rule, resource. What hangs on something that is not there is none."""

STANDING = {"dev-gke": {("advisory", "budget-nearly-used", "monthly-cost")}}
"""What is told of a stack as it is: nobody has a price of an N1 with T4s, so that nobody can say whether dev-gke keeps to its budget."""

LEVELS = {rule.name: rule.level for rule in all_rules()}

HUNTER = "hunter2-17x"

PLANTED = "\n\nfrom infra.planting import planting\n\nmain = planting(main)\n"


def plant(checkout: OwnCheckout, changed: dict[str, Any], added: Sequence[dict[str, Any]] = ()) -> None:
    """Puts a defect into the checkout's own program."""
    assert changed or added
    (checkout.folder / "planted.json").write_text(json.dumps({"changed": changed, "added": added}))
    shutil.copyfile(HERE / "planting.py", checkout.folder / "infra" / "planting.py")
    program = checkout.folder / "infra" / "program.py"
    as_it_is = program.read_text()
    if not as_it_is.endswith(PLANTED):
        program.write_text(as_it_is + PLANTED)


def plant_defects(checkout: OwnCheckout, *defects: Defect) -> None:
    before, after = planted(*defects)
    changed = {name: edits(before[name][1], inputs) for name, (_, inputs) in after.items() if name in before}
    added = [{"type": kind, "name": name, "inputs": inputs} for name, (kind, inputs) in after.items() if name not in before]
    plant(checkout, {name: listed for name, listed in changed.items() if listed}, added)


def stopped_by_their_rules_alone(checkout: OwnCheckout, *defects: Defect) -> None:
    plant_defects(checkout, *defects)

    shown = checkout.flexspot("preview", "-s", defects[0].stack, "--offline")

    standing = STANDING.get(defects[0].stack, set())
    wanted = {(LEVELS[each.rule], each.rule, each.on) for each in defects}
    assert set(TOLD.findall(shown.stdout)) - standing == wanted - standing, shown.stdout + shown.stderr
    # What only advises lets the stack through.
    stopping = [each.rule for each in defects if LEVELS[each.rule] is Level.MANDATORY]
    assert shown.returncode == (1 if stopping else 0)
    assert ("would be created" in shown.stdout) == (not stopping)
    # The error tells the first of them again.
    assert not stopping or any(rule in shown.stderr for rule in stopping), shown.stderr


PREVIEWS = {"dev-eks": 8, "dev-gke": 6, "prod-eks": 1, "prod-gke": 2}
"""How many previews of each stack keep its defects apart. Counted when they are tested: to look for them, the stacks must be declared."""


@pytest.mark.parametrize("stack, number", [(stack, number) for stack, many in PREVIEWS.items() for number in range(many)])
def test_a_preview_with_defects_is_stopped_by_their_rules_alone(stack: str, number: int, checkout: OwnCheckout) -> None:
    stopped_by_their_rules_alone(checkout, *shared_previews(stack)[number])


def test_every_defect_is_in_a_preview() -> None:
    shared = {stack: shared_previews(stack) for stack in sorted({defect.stack for defect in EVERY_DEFECT})}

    assert {stack: len(previews) for stack, previews in shared.items()} == PREVIEWS
    assert sorted(str(each) for previews in shared.values() for defects in previews for each in defects) == sorted(map(str, EVERY_DEFECT))


def test_a_preview_with_a_job_that_keeps_every_rule_goes_through(checkout: OwnCheckout) -> None:
    plant_defects(checkout, Defect("none", "dev-gke", JOB, job))

    shown = checkout.flexspot("preview", "-s", "dev-gke", "--offline")

    assert (shown.returncode, set(TOLD.findall(shown.stdout))) == (0, STANDING["dev-gke"]), shown.stdout + shown.stderr
    assert f"kubernetes:batch/v1:Job {JOB} create" in shown.stdout


def test_a_secret_of_the_program_is_judged_and_not_told(checkout: OwnCheckout) -> None:
    path = ("spec", "template", "spec", "nodeClassRef", "name")
    plant(checkout, {"l4-spot-node-pool": [{"path": path, "value": HUNTER, "secret": True}]})

    stopped = checkout.flexspot("preview", "-s", "dev-eks", "--offline")

    printed = stopped.stdout + stopped.stderr
    assert set(TOLD.findall(stopped.stdout)) == {("mandatory", "nodepool-references-missing-class", "l4-spot-node-pool")}, printed
    assert f"spec.template.spec.nodeClassRef names EC2NodeClass {SHOWN} of karpenter.k8s.aws" in stopped.stderr
    assert HUNTER not in printed
