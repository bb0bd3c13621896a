"""`flexspot preview --offline` of the shipped cloud stacks: the real engine and policies, without any cloud account."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from checkout_fixtures import OwnCheckout
from program_declarations import as_shipped

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.engine

SECRETS = re.compile(
    r"-----BEGIN|client-key-data|client-certificate-data|\"?private_?key\"?\s*:|password|access_token|ya29\.", re.IGNORECASE
)
CIPHER = "v1:3Ac1Cx3n5xRk7l0J:bDE9t0b5cUYcXw8mOQ0l4yCUnzM="


@dataclass(frozen=True)
class Previewed:
    """A preview: its output, the plan that it wrote, and the checkout, whose stack file has a secret."""

    shown: subprocess.CompletedProcess[str]
    plan: Path
    checkout: OwnCheckout
    before: set[str]
    stack_file: str


@pytest.fixture(scope="module")
def previewed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Previewed]:
    """Return a function that previews a shipped stack, once for all tests."""
    made: dict[str, Previewed] = {}

    def of(stack: str) -> Previewed:
        if stack not in made:
            folder = tmp_path_factory.mktemp(stack)
            checkout = OwnCheckout(folder / "checkout")
            file = checkout.folder / "stacks" / f"Pulumi.{stack}.yaml"
            written = yaml.safe_load(file.read_text(encoding="utf-8")) | {"encryptionsalt": f"v1:8C8zBb4Bd+s=:{CIPHER}"}
            written["config"]["trial:token"] = {"secure": CIPHER}
            file.write_text(yaml.safe_dump(written), encoding="utf-8")
            before = files_of(checkout.folder)
            # The tools find neither credentials nor plugins nor a state of the user.
            nowhere = str(folder / "nowhere")
            shown = checkout.flexspot(
                *("preview", "-s", stack, "--offline", "--plan-out", str(folder / "plan.json")),
                CLOUDSDK_CONFIG=nowhere,
                GOOGLE_APPLICATION_CREDENTIALS=nowhere,
                AWS_CONFIG_FILE=nowhere,
                AWS_SHARED_CREDENTIALS_FILE=nowhere,
                PULUMI_HOME=nowhere,
            )
            made[stack] = Previewed(shown, folder / "plan.json", checkout, before, yaml.safe_dump(written))
        return made[stack]

    return of


def files_of(folder: Path) -> set[str]:
    """Return the files in a checkout, except Python's compiled modules."""
    found = {path.relative_to(folder) for part in folder.iterdir() if not part.is_symlink() for path in [part, *part.rglob("*")]}
    return {str(path) for path in found if "__pycache__" not in path.parts and path.parts[0] != ".tools"}


OTHERS = pytest.mark.nightly(tested_by="test_a_shipped_stack_passes_the_policies_without_a_cloud_account_and_keeps_no_state")


@pytest.mark.parametrize(
    "stack,pools",
    [
        pytest.param("dev-gke", ("gcp:container:NodePool", 2 + 1), id="dev-gke, and the system pool"),
        pytest.param("prod-gke", ("gcp:container:NodePool", 6 + 1), id="prod-gke, and the system pool", marks=OTHERS),
        pytest.param("dev-eks", ("kubernetes:karpenter.sh/v1:NodePool", 2 + 1), id="dev-eks, and the pool of other work"),
        pytest.param("prod-eks", ("kubernetes:karpenter.sh/v1:NodePool", 5 + 1), id="prod-eks, and the pool of other work", marks=OTHERS),
    ],
)
def test_a_shipped_stack_passes_the_policies_without_a_cloud_account_and_keeps_no_state(
    stack: str, pools: tuple[str, int], previewed: Callable[[str], Previewed]
) -> None:
    shown, checkout = previewed(stack).shown, previewed(stack).checkout

    printed = shown.stdout + shown.stderr
    assert shown.returncode == 0, printed
    assert "offline: providers echo their inputs" in shown.stdout
    # All declarations of the program, which are reviewed as a snapshot, and the stack itself.
    assert f"\n{len(as_shipped(stack).made) + 1} would be created\n" in shown.stdout
    kind, count = pools
    assert len(re.findall(f"{re.escape(kind)} ", shown.stdout)) == count
    assert re.search(r"(✅|⚠️)\s+flexspot@", shown.stdout)
    assert "[mandatory]" not in printed
    # The price of an N1 with T4s is not known, so dev-gke may exceed its budget.
    advised = set(re.findall(r"\[advisory\] \[severity: \w+\]\s+(\S+)", printed))
    assert advised == ({"budget-nearly-used"} if stack == "dev-gke" else set())
    assert SECRETS.search(printed) is None
    assert files_of(checkout.folder) == previewed(stack).before


def test_a_preview_of_a_stack_with_secrets_needs_no_passphrase_and_shows_no_secret(previewed: Callable[[str], Previewed]) -> None:
    """The engine failed with "incorrect passphrase", or would have used a cloud's key."""
    found = previewed("dev-eks")

    printed = found.shown.stdout + found.shown.stderr
    assert found.shown.returncode == 0, printed
    assert "the secrets in trial:token are not read" in printed
    assert CIPHER not in printed
    assert (found.checkout.folder / "stacks" / "Pulumi.dev-eks.yaml").read_text(encoding="utf-8") == found.stack_file


def test_the_declared_resources_are_the_costed_ones(previewed: Callable[[str], Previewed]) -> None:
    text = previewed("dev-eks").plan.read_text()

    found = json.loads(text)
    [declared] = [each["inputs"] for each in found["resources"] if each["type"] == "flexspot:index:MonthlyCost"]
    assert declared["environment"]["expected_usd"] == found["cost"]["expected_usd"] == "1839.39"
    assert found["policies"] == []
    assert "4dabf18193072939515e22adb298388d" not in text


def test_a_budget_that_an_unknown_price_may_exceed_causes_a_warning(previewed: Callable[[str], Previewed]) -> None:
    """The book has no price of an N1 with T4s, so the budget of 4,000 may be exceeded."""
    found = previewed("dev-gke")
    costed = found.checkout.flexspot("cost", str(found.plan))

    assert (found.shown.returncode, costed.returncode) == (0, 0), costed.stdout
    assert "[advisory] [severity: low]  budget-nearly-used" in found.shown.stdout
    assert "not known: spot price of n1-standard-8 in us-central1" in " ".join((found.shown.stdout + found.shown.stderr).split())


def change(checkout: OwnCheckout, stack: str, **changes: Any) -> None:
    """Change settings in the file of a shipped stack."""
    file = checkout.folder / "stacks" / f"Pulumi.{stack}.yaml"
    written: dict[str, Any] = yaml.safe_load(file.read_text())
    written["config"]["flexspot:platform"] |= changes
    file.write_text(yaml.safe_dump(written))


def test_a_violated_rule_or_budget_is_refused_and_the_plan_is_still_written(checkout: OwnCheckout, tmp_path: Path) -> None:
    change(
        checkout, "dev-gke", admission={"rules_file": "../flexspot-lint.yaml"}, budget={"monthly_usd": 4000, "on_unknown_prices": "refuse"}
    )
    (checkout.folder / "flexspot-lint.yaml").write_text("flexspot: {missing-owner-labels: {label-keys: [cost-centre]}}")
    plan = tmp_path / "plan.json"

    stopped = checkout.flexspot("preview", "-s", "dev-gke", "--offline", "--plan-out", str(plan))
    costed = checkout.flexspot("cost", str(plan))

    printed = stopped.stdout + stopped.stderr
    assert (stopped.returncode, costed.returncode) == (1, 1), printed
    assert "missing-owner-labels" in printed, printed
    assert "cost-centre" in printed
    assert "[mandatory] [severity: high]  budget-exceeded  (" in printed
    assert "would be created" not in stopped.stdout
    found = json.loads(plan.read_text())
    assert len(found["resources"]) > 100
    assert {each["policy"] for each in found["policies"]} >= {"budget-exceeded", "missing-owner-labels"}


OTHER_CLUSTERS = pytest.mark.nightly(tested_by="test_an_existing_cluster_is_previewed_by_its_name_alone")


@pytest.mark.parametrize(
    "stack,parts",
    [
        ("dev-eks", {"existing_karpenter": {"node_role": "KarpenterNodeRole-theirs"}, "existing_gpu_operator": True}),
        pytest.param("dev-gke", {}, marks=OTHER_CLUSTERS),
        pytest.param("dev-eks", {}, marks=OTHER_CLUSTERS),
    ],
)
def test_an_existing_cluster_is_previewed_by_its_name_alone(stack: str, parts: dict[str, Any], checkout: OwnCheckout) -> None:
    known = {"version": "1.35", "ami": "al2023@v20260903"} if stack == "dev-eks" else {}
    change(checkout, stack, cluster={"existing": "theirs", **known, **parts})

    shown = checkout.flexspot("preview", "-s", stack, "--offline")

    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert re.search(r"read (gcp:container|aws:eks):Cluster cluster-cluster", shown.stdout)
    assert "kubernetes:helm.sh/v3:Release kueue-release create" in shown.stdout
    assert "[mandatory]" not in shown.stdout + shown.stderr
    assert ("Release karpenter-release create" in shown.stdout) is (stack == "dev-eks" and not parts)
