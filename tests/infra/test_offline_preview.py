"""`flexspot preview --offline` of the shipped cloud stacks: the real engine and policies, without any cloud account."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from program_declarations import as_shipped

if TYPE_CHECKING:
    from checkout_fixtures import OwnCheckout

pytestmark = pytest.mark.engine

SECRETS = re.compile(
    r"-----BEGIN|client-key-data|client-certificate-data|\"?private_?key\"?\s*:|password|access_token|ya29\.", re.IGNORECASE
)

POOLS = "capacity/plan/pools.py"
EMPTIED = """

def without_taints(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult:
    if args.type_ == "gcp:container/nodePool:NodePool" and args.name == "l4-spot-node-pool":
        args.props["node_config"].taints = []
    return pulumi.ResourceTransformationResult(args.props, args.opts)


_main = main


def main() -> None:
    pulumi.runtime.register_stack_transformation(without_taints)
    _main()
"""
"""Added to the program: it takes the taints away behind the components' backs, as somebody's own transformation may."""


def files_of(folder: Path) -> set[str]:
    """What is in a checkout, except what Python writes beside its modules."""
    found = {path.relative_to(folder) for part in folder.iterdir() if not part.is_symlink() for path in [part, *part.rglob("*")]}
    return {str(path) for path in found if "__pycache__" not in path.parts and path.parts[0] != ".tools"}


@pytest.mark.parametrize(
    "stack,pools",
    [
        pytest.param("dev-gke", ("gcp:container:NodePool", 2 + 1), id="dev-gke, and the system pool"),
        pytest.param("prod-gke", ("gcp:container:NodePool", 6 + 1), id="prod-gke, and the system pool"),
        pytest.param("dev-eks", ("kubernetes:karpenter.sh/v1:NodePool", 2 + 1), id="dev-eks, and the pool of other work"),
        pytest.param("prod-eks", ("kubernetes:karpenter.sh/v1:NodePool", 5 + 1), id="prod-eks, and the pool of other work"),
    ],
)
def test_a_shipped_stack_passes_the_policies_without_a_cloud_account_and_keeps_no_state(
    stack: str, pools: tuple[str, int], checkout: OwnCheckout, tmp_path: Path
) -> None:
    before = files_of(checkout.folder)

    # Neither credentials nor plugins nor a state of the user's own are where the tools would look for them.
    nowhere = str(tmp_path / "nowhere")
    shown = checkout.flexspot(
        *("preview", "-s", stack, "--offline"),
        CLOUDSDK_CONFIG=nowhere,
        GOOGLE_APPLICATION_CREDENTIALS=nowhere,
        AWS_CONFIG_FILE=nowhere,
        AWS_SHARED_CREDENTIALS_FILE=nowhere,
        PULUMI_HOME=nowhere,
    )

    printed = shown.stdout + shown.stderr
    assert shown.returncode == 0, printed
    assert "offline: providers echo their inputs" in shown.stdout
    # All that the program declares, which is reviewed as a snapshot, and the stack itself.
    assert f"\n{len(as_shipped(stack).made) + 1} would be created\n" in shown.stdout
    kind, count = pools
    assert len(re.findall(f"{re.escape(kind)} ", shown.stdout)) == count
    assert re.search(r"(✅|⚠️)\s+flexspot@", shown.stdout)
    assert "[mandatory]" not in printed
    # Nobody has a price of an N1 with T4s, so that nobody can say whether dev-gke keeps to its budget.
    advised = set(re.findall(r"\[advisory\] \[severity: \w+\]\s+(\S+)", printed))
    assert advised == ({"budget-nearly-used"} if stack == "dev-gke" else set())
    assert SECRETS.search(printed) is None
    assert files_of(checkout.folder) == before


def test_a_pool_whose_taints_the_plan_lost_is_refused_by_the_component_in_the_rules_name(checkout: OwnCheckout) -> None:
    pools = checkout.folder / POOLS
    written = pools.read_text()
    emptied = written.replace("taints = [_device_taint(pool)]", "return ()")
    assert emptied != written
    pools.write_text(emptied)

    refused = checkout.flexspot_afresh("preview", "-s", "dev-gke", "--offline")

    assert refused.returncode == 1
    assert "gpu-pool-without-taint: GkeGpuNodePool l4-spot has taints none" in refused.stderr, refused.stdout + refused.stderr
    assert "would be created" not in refused.stdout


def test_a_pool_whose_taints_are_taken_away_behind_the_component_is_stopped_by_the_policy(checkout: OwnCheckout) -> None:
    program = checkout.folder / "infra" / "program.py"
    program.write_text(program.read_text() + EMPTIED)

    stopped = checkout.flexspot("preview", "-s", "dev-gke", "--offline")

    assert stopped.returncode == 1
    assert "gpu-pool-without-taint" in stopped.stderr, stopped.stdout + stopped.stderr
    assert "l4-spot-node-pool" in stopped.stderr
    assert "t4-spot-node-pool" not in stopped.stderr, "the other pool keeps the rules"
    assert "would be created" not in stopped.stdout


def test_the_policy_pack_goes_by_the_rules_that_the_stack_names(checkout: OwnCheckout) -> None:
    file = checkout.folder / "stacks" / "Pulumi.dev-gke.yaml"
    written: dict[str, Any] = yaml.safe_load(file.read_text())
    written["config"]["flexspot:platform"]["admission"] = {"rules_file": "../flexspot-lint.yaml"}
    file.write_text(yaml.safe_dump(written))
    (checkout.folder / "flexspot-lint.yaml").write_text("flexspot: {missing-owner-labels: {label-keys: [cost-centre]}}")

    stopped = checkout.flexspot("preview", "-s", "dev-gke", "--offline")

    assert stopped.returncode == 1
    assert "missing-owner-labels" in stopped.stderr, stopped.stdout + stopped.stderr
    assert "cost-centre" in stopped.stderr
    assert "would be created" not in stopped.stdout


THEIR_KARPENTER = {"existing_karpenter": {"node_role": "KarpenterNodeRole-theirs"}, "existing_gpu_operator": True}


@pytest.mark.parametrize("stack,parts", [("dev-gke", {}), ("dev-eks", {}), ("dev-eks", THEIR_KARPENTER)])
def test_a_cluster_of_somebody_elses_is_previewed_by_its_name_alone(stack: str, parts: dict[str, Any], checkout: OwnCheckout) -> None:
    file = checkout.folder / "stacks" / f"Pulumi.{stack}.yaml"
    written: dict[str, Any] = yaml.safe_load(file.read_text())
    platform = written["config"]["flexspot:platform"]
    platform["cluster"] = {
        "existing": "theirs",
        **{key: platform["cluster"][key] for key in ("version", "ami") if key in platform["cluster"]},
        **parts,
    }
    file.write_text(yaml.safe_dump(written))

    shown = checkout.flexspot("preview", "-s", stack, "--offline")

    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert re.search(r"read (gcp:container|aws:eks):Cluster cluster-cluster", shown.stdout)
    assert "kubernetes:helm.sh/v3:Release kueue-release create" in shown.stdout
    assert "[mandatory]" not in shown.stdout + shown.stderr
    assert ("Release karpenter-release create" in shown.stdout) is (stack == "dev-eks" and not parts)


def test_datasets_in_lustre_pass_the_policies_and_their_size_is_paid_for(checkout: OwnCheckout) -> None:
    file = checkout.folder / "stacks" / "Pulumi.dev-eks.yaml"
    written: dict[str, Any] = yaml.safe_load(file.read_text())
    written["config"]["flexspot:platform"]["storage"] = {"checkpoints": "efs", "datasets": "lustre", "lustre": {"capacity_gib": 2400}}
    file.write_text(yaml.safe_dump(written))

    shown = checkout.flexspot("preview", "-s", "dev-eks", "--offline", "--plan-out", "plan.json")
    cost = checkout.flexspot("cost", "plan.json", "--format", "json")

    printed = shown.stdout + shown.stderr
    assert shown.returncode == 0, printed
    assert "aws:fsx:LustreFileSystem datasets-lustre-file-system create" in printed
    assert "aws:fsx:DataRepositoryAssociation datasets-lustre-bucket create" in printed
    assert "[mandatory]" not in printed
    assert "[advisory]" not in printed
    [line] = [each for each in json.loads(cost.stdout)["lines"] if "Lustre" in each["name"]]
    # 2400 GiB at 0.145, all month and whatever runs.
    assert (line["worst_case_usd"], line["expected_usd"], line["idle_floor_usd"]) == ("348.00", "348.00", "348.00")


def test_the_stack_in_auto_mode_of_the_guide_passes_the_policies_and_its_fee_is_counted(checkout: OwnCheckout) -> None:
    guide = (Path(__file__).resolve().parents[2] / "docs" / "guides" / "eks.md").read_text(encoding="utf-8")
    written = guide.partition("\n## Auto Mode\n")[2].partition("\n## ")[0]
    block = re.search(r"(?:^    .*\n)+", written, re.MULTILINE)
    assert block is not None
    (checkout.folder / "stacks" / "Pulumi.auto.yaml").write_text(re.sub("^    ", "", block[0], flags=re.MULTILINE), encoding="utf-8")

    shown = checkout.flexspot("preview", "-s", "auto", "--offline", "--plan-out", "plan.json")
    cost = checkout.flexspot("cost", "plan.json", "--format", "json")

    printed = shown.stdout + shown.stderr
    assert shown.returncode == 0, printed
    assert "[mandatory]" not in printed
    assert "[advisory]" not in printed
    assert "kubernetes:eks.amazonaws.com/v1:NodeClass l4-spot-class-node-class create" in printed
    assert "kubernetes:karpenter.sh/v1:NodePool system-nodes-node-pool create" in printed
    assert not re.search(r"karpenter-release|EC2NodeClass|NodeGroup|sqs:Queue ", printed)
    lines = json.loads(cost.stdout)["lines"]
    assert {each["name"] for each in lines if each["section"] == "pool-fee"} == {"l4-spot", "l40s-reserved"}
