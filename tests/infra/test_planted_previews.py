"""The first preview of a shipped stack with one defect in it: the real program in the real engine, by `flexspot preview --offline`."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from planted_defects import JOB, Defect, job, planted
from planted_table import EVERY_DEFECT
from resource_edits import edits

from policies.rule import Level
from policies.rules import all_rules
from policies.secrecy import SHOWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from checkout_fixtures import OwnCheckout

pytestmark = pytest.mark.engine

HERE = Path(__file__).parent

TOLD = re.compile(r"- \[(mandatory|advisory)\]\s+\S+\s+\(\S+: (\S+)\)\n\s+([a-z-]+): [^:\n]+: (?!cannot be decided yet: )")
"""A violation as the engine prints it: level, resource, rule. What hangs on something that is not there is none."""

LEVELS = {rule.name: rule.level for rule in all_rules()}

HUNTER = "hunter2-17x"


def plant(checkout: OwnCheckout, changed: dict[str, Any], added: Sequence[dict[str, Any]] = ()) -> None:
    """Puts a defect into the checkout's own program."""
    assert changed or added
    (checkout.folder / "planted.json").write_text(json.dumps({"changed": changed, "added": added}))
    shutil.copyfile(HERE / "planting.py", checkout.folder / "infra" / "planting.py")
    program = checkout.folder / "infra" / "program.py"
    program.write_text(f"{program.read_text()}\n\nfrom infra.planting import planting\n\nmain = planting(main)\n")


def plant_defect(checkout: OwnCheckout, defect: Defect) -> None:
    before, after = planted(defect)
    changed = {name: edits(before[name][1], inputs) for name, (_, inputs) in after.items() if name in before}
    added = [{"type": kind, "name": name, "inputs": inputs} for name, (kind, inputs) in after.items() if name not in before]
    plant(checkout, {name: listed for name, listed in changed.items() if listed}, added)


@pytest.mark.parametrize("defect", EVERY_DEFECT, ids=str)
def test_a_preview_with_a_defect_is_stopped_by_its_rule_alone(defect: Defect, checkout: OwnCheckout) -> None:
    plant_defect(checkout, defect)

    shown = checkout.flexspot("preview", "-s", defect.stack, "--offline")

    # What only advises lets the stack through.
    level = LEVELS[defect.rule]
    assert set(TOLD.findall(shown.stdout)) == {(level, defect.on, defect.rule)}, shown.stdout + shown.stderr
    assert shown.returncode == (1 if level is Level.MANDATORY else 0)
    assert (defect.rule in shown.stderr, "would be created" in shown.stdout) == ((True, False) if shown.returncode else (False, True))


def test_a_preview_with_a_job_that_keeps_every_rule_goes_through(checkout: OwnCheckout) -> None:
    plant_defect(checkout, Defect("none", "dev-gke", JOB, job))

    shown = checkout.flexspot("preview", "-s", "dev-gke", "--offline")

    assert (shown.returncode, TOLD.findall(shown.stdout)) == (0, []), shown.stdout + shown.stderr
    assert f"kubernetes:batch/v1:Job {JOB} create" in shown.stdout


def test_a_secret_of_the_program_is_judged_and_not_told(checkout: OwnCheckout) -> None:
    path = ("spec", "template", "spec", "nodeClassRef", "name")
    plant(checkout, {"l4-spot-node-pool": [{"path": path, "value": HUNTER, "secret": True}]})

    stopped = checkout.flexspot("preview", "-s", "dev-eks", "--offline")

    printed = stopped.stdout + stopped.stderr
    assert set(TOLD.findall(stopped.stdout)) == {("mandatory", "l4-spot-node-pool", "nodepool-references-missing-class")}, printed
    assert f"spec.template.spec.nodeClassRef names EC2NodeClass {SHOWN} of karpenter.k8s.aws" in stopped.stderr
    assert HUNTER not in printed
