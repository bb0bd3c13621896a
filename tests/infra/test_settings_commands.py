"""`flexspot settings` and `flexspot prices` on the command line."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from typer.testing import CliRunner

from flexspot.capacity.values.errors import ExplainedError
from flexspot.infra.cli.app import app

if TYPE_CHECKING:
    from checkout_fixtures import OwnCheckout

pytestmark = pytest.mark.slow

STACKS = ("local", "dev-gke", "prod-gke", "dev-eks", "prod-eks")

PRICES = """
cloud: aws
sources:
  contract: {citation: our own contract of 2026, as_of: 2026-10-01, verified: true}
prices:
  - {machine: g6.xlarge, region: us-east-1, capacity_type: spot, usd_per_hour: "0.1", source: contract}
"""


def flexspot(*arguments: str) -> tuple[int, str]:
    answer = CliRunner().invoke(app, arguments)
    if isinstance(answer.exception, ExplainedError):
        raise answer.exception
    return answer.exit_code, answer.stdout


WARNED = {"prod-eks": ["nobody-in-the-network"]}
"""Documented warnings. The stack is private in its own VPC, since EKS' other kinds of access need a user's CIDR range."""


SHARED = {
    "existing_network": "projects/acme-net/global/networks/shared",
    "existing_subnetwork": "projects/acme-net/regions/us-central1/subnetworks/gpu-nodes",
}
"""A network of another project."""


def change(checkout: OwnCheckout, **changes: Any) -> None:
    """Change settings in the file of dev-gke."""
    file = checkout.folder / "stacks" / "Pulumi.dev-gke.yaml"
    content = yaml.safe_load(file.read_text())
    content["config"]["flexspot:platform"] |= changes
    file.write_text(yaml.safe_dump(content))


@pytest.mark.parametrize("stack", STACKS)
def test_every_shipped_stack_is_valid_with_only_documented_warnings(stack: str) -> None:
    code, shown = flexspot("settings", "check", "-s", stack)

    assert code == 0
    assert f"stack {stack} can work: at most " in shown
    warned = [line.partition(":")[0].removeprefix("warning ") for line in shown.splitlines() if line.startswith("warning ")]
    assert warned == WARNED.get(stack, [])
    assert shown.endswith(f"; {len(warned)} warning(s).\n")


@pytest.mark.parametrize("stack,gpus", [("prod-gke", "96 x nvidia-h100-80gb, 36 x nvidia-l4, 24 x nvidia-tesla-a100"), ("dev-gke", "")])
def test_nodes_that_gke_may_create_on_demand_are_reported(stack: str, gpus: str) -> None:
    _, shown = flexspot("settings", "check", "-s", stack)

    message = " ".join(shown[shown.index("GKE may make nodes by itself, on demand") :].split())
    assert " vCPU and " in message
    if gpus:
        assert f"up to {gpus}; cluster.gpu_auto_provisioning: false leaves the GPUs out." in message
    else:
        assert "without GPUs." in message


def test_the_first_screen_of_the_readme_shows_what_the_command_prints() -> None:
    _, shown = flexspot("settings", "check", "-s", "dev-eks")

    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    assert "\n".join(f"    {line.rstrip()}".rstrip() for line in shown.rstrip().splitlines()) in readme


def test_problems_of_a_stack_are_listed_with_exit_code_2(checkout: OwnCheckout) -> None:
    checkout.change("broken", pools=[{"name": "a", "machine": "g6.xlrge", "capacity_type": "spot", "max_nodes": 1, "serves": ["training"]}])

    refused = checkout.flexspot("settings", "check", "-s", "broken")

    assert refused.returncode == 2
    assert "stacks/Pulumi.broken.yaml cannot be used." in refused.stderr
    assert "pools.0.machine (is 'g6.xlrge'): is not a machine of the catalog; did you mean g6.xlarge?" in refused.stderr
    line = refused.stderr.partition(": pools.0.machine")[0].rpartition("line ")[2]
    written = (checkout.folder / "stacks" / "Pulumi.broken.yaml").read_text().splitlines()
    assert "g6.xlrge" in written[int(line) - 1]


def test_programs_get_problems_and_plan_as_json(checkout: OwnCheckout) -> None:
    checkout.change("broken", surprise=1)

    fine = json.loads(checkout.flexspot("settings", "check", "-s", "local", "--format", "json").stdout)
    refused = checkout.flexspot("settings", "check", "-s", "broken", "--format", "json")

    assert fine["problems"] == []
    assert [pool["name"] for pool in fine["plan"]["pools"]] == ["l4-on-demand", "l4-spot"]
    assert refused.returncode == 2
    [problem] = json.loads(refused.stdout)["problems"]
    assert (problem["path"], problem["problem"], problem["rule"]) == ("surprise", "is not a setting", "invalid-setting")


def test_the_schema_next_to_the_stack_files_is_the_printed_one() -> None:
    code, printed = flexspot("settings", "schema")

    committed = Path(__file__).resolve().parents[2] / "stacks" / "platform.schema.json"
    assert code == 0
    assert printed == committed.read_text(), "write it anew: flexspot settings schema > stacks/platform.schema.json"


def test_unknown_prices_are_reported_and_never_zero() -> None:
    code, shown = flexspot("prices", "check", "-s", "dev-gke", "--format", "json")

    prices: list[dict[str, Any]] = json.loads(shown)["prices"]
    assert code == 1
    assert {row["pool"] for row in prices if row["usd_per_hour"] is None} == {"t4-spot"}
    assert not [row for row in prices if row["usd_per_hour"] in (0, "0")]


def test_a_stack_whose_prices_are_all_known_is_fine() -> None:
    code, shown = flexspot("prices", "check", "-s", "dev-eks", "--max-age-days", "100000")

    assert code == 0
    assert "0 not known, 0 too old" in shown
    assert flexspot("prices", "check", "-s", "dev-eks", "--max-age-days", "1")[0] == 1


def test_a_price_of_spot_is_old_after_a_month_and_one_of_a_list_after_half_a_year() -> None:
    """The flex-start price of an H100 is from a bill of August 2025. Queued nodes use it, too."""
    prices: list[dict[str, Any]] = json.loads(flexspot("prices", "check", "-s", "prod-gke", "--format", "json")[1])["prices"]
    [queued] = [row for row in prices if row["pool"] == "h100-queued"]

    assert (queued["as_of"], queued["verified"], queued["too_old"]) == ("2025-08-16", False, True)
    for row in prices:
        assert row["too_old"] is (row["age_days"] > (30 if row["capacity_type"] == "spot" else 180))


def test_own_prices_take_precedence_and_are_named(checkout: OwnCheckout) -> None:
    checkout.change("own", prices_file="mine.yaml")
    (checkout.folder / "stacks" / "mine.yaml").write_text(PRICES)

    shown = checkout.flexspot("prices", "check", "-s", "own", "--format", "json")

    rows = {row["pool"]: row for row in json.loads(shown.stdout)["prices"]}
    assert rows["l4-spot"]["usd_per_hour"] == "0.1"
    assert rows["l4-spot"]["source"] == "mine.yaml: contract"
    assert rows["l4-on-demand"]["source"] == "karpenter-1.15.1"


@pytest.mark.parametrize(
    "content,problem",
    [
        (None, "prices_file (is 'mine.yaml'): does not exist; write the path relative to the stack file's folder"),
        ("cloud: gcp\nsources: {}\nprices: []\n", "mine.yaml has prices of gcp, but those of aws are needed"),
        (PRICES.replace("spot", "spott"), "prices.0.capacity_type"),
    ],
    ids=["missing", "another cloud", "a wrong row"],
)
def test_an_unusable_prices_file_is_refused(content: str | None, problem: str, checkout: OwnCheckout) -> None:
    checkout.change("own", prices_file="mine.yaml")
    if content is not None:
        (checkout.folder / "stacks" / "mine.yaml").write_text(content)

    refused = checkout.flexspot("settings", "check", "-s", "own")

    assert refused.returncode == 2
    assert problem in refused.stderr
    assert "Traceback" not in refused.stderr


RULES = "admission.rules_file (is '../rules.yaml'): "


@pytest.mark.parametrize(
    "content,problem",
    [
        (None, f"{RULES}does not exist; name a file by its path from the stack file's folder"),
        (
            "flexspot: {imag-not-pinned: mandatory}",
            f"{RULES}flexspot.imag-not-pinned: there is no 'imag-not-pinned'; did you mean image-not-pinned?",
        ),
        ("flexspot: {a: mandatory, b: mandatory}", "flexspot.b: there is no 'b'; "),
    ],
    ids=["missing", "an unknown rule", "all at once"],
)
def test_an_unusable_rules_file_is_refused(content: str | None, problem: str, checkout: OwnCheckout) -> None:
    checkout.change("own", admission={"rules_file": "../rules.yaml"})
    if content is not None:
        (checkout.folder / "rules.yaml").write_text(content)

    refused = checkout.flexspot("settings", "check", "-s", "own")
    as_data = json.loads(checkout.flexspot("settings", "check", "-s", "own", "--format", "json").stdout)

    assert refused.returncode == 2
    assert problem in refused.stderr
    assert "line " in refused.stderr.partition(RULES)[0]
    assert "Traceback" not in refused.stderr
    assert {each["path"] for each in as_data["problems"]} == {"admission.rules_file"}


def test_the_changes_of_a_rules_file_are_shown(checkout: OwnCheckout) -> None:
    checkout.change("own", admission={"rules_file": "../flexspot-lint.yaml"})
    (checkout.folder / "flexspot-lint.yaml").write_text(
        "flexspot:\n  image-not-pinned: {level: mandatory, locked: true, moving-tags: [edge, next]}\n  grace-exceeds-notice: disabled\n"
        "  missing-owner-labels: mandatory\n  suppressions: [{rule: job-without-queue, object: Job/a/*, reason: goes in May}]\n"
    )

    shown = checkout.flexspot("settings", "check", "-s", "own")

    assert shown.returncode == 0
    assert [line for line in shown.stdout.splitlines() if line.startswith("rule ")] == [
        "rule job-without-queue: accepted for Job/a/*",
        "rule grace-exceeds-notice: disabled",
        "rule image-not-pinned: mandatory; locked; moving-tags: edge, next",
    ]


def test_requirements_of_an_account_are_shown_with_the_commands_to_request_them() -> None:
    _, shown = flexspot("settings", "needs", "-s", "dev-eks")

    assert "L-3819A6DF" in shown
    assert "128 l4-spot, 16 t4-spot" in shown
    ask = "aws service-quotas request-service-quota-increase --region us-east-1 --service-code ec2"
    assert f"{ask} --quota-code L-3819A6DF --desired-value 144" in shown.splitlines()
    assert "L-0263D0A3 --desired-value" not in shown
    assert "the deploying role in account 111122223333" in shown
    assert "aws sts get-caller-identity --query Arn --output text" in shown.splitlines()


def test_requirements_of_a_project_are_shown_with_the_command_that_enables_its_apis() -> None:
    _, shown = flexspot("settings", "needs", "-s", "dev-gke")

    enable = next(line for line in shown.splitlines() if line.startswith("gcloud services enable --project acme-ai-dev "))
    assert {"container.googleapis.com", "containerfilesystem.googleapis.com", "iamcredentials.googleapis.com"} <= set(enable.split())
    assert "cloudkms.googleapis.com" not in enable, "no stack of ours has a key"
    assert "roles/resourcemanager.projectIamAdmin" in shown
    grant = "gcloud projects add-iam-policy-binding acme-ai-dev --condition None --role roles/resourcemanager.projectIamAdmin"
    assert f'{grant} --member "$deployer"' in shown.splitlines()


@pytest.mark.parametrize(
    "account, member, shared",
    [
        ("ann@example.com", "user:ann@example.com", True),
        ("up@acme-ai-dev.iam.gserviceaccount.com", "serviceAccount:up@acme-ai-dev.iam.gserviceaccount.com", False),
    ],
)
def test_every_command_of_a_projects_requirements_runs_in_a_shell(account: str, member: str, shared: object, checkout: OwnCheckout) -> None:
    """A shell runs the commands with a fake gcloud that records its arguments. They contain no placeholders."""
    if shared:
        change(checkout, network=SHARED)
    shown = checkout.flexspot("settings", "needs", "-s", "dev-gke").stdout.splitlines()
    commands = [line for line in shown if line.startswith(("gcloud ", "number=", "deployer="))]
    gcloud = f"""gcloud() {{ case "$*" in *get-value*) echo {account};; *describe*) echo 4711;; *) printf '%s|' "$@"; echo;; esac; }}"""

    ran = subprocess.run(["/bin/bash", "-euc", "\n".join([gcloud, *commands])], capture_output=True, text=True, check=True)

    called = [line.split("|")[:-1] for line in ran.stdout.splitlines()]
    members = {each[each.index("--member") + 1] for each in called if "--member" in each}
    assert member in members
    assert {each for each in members if not each.startswith("serviceAccount:")} <= {member}
    assert not any("$" in word or not word for each in called for word in each)
    assert any("acme-net" in each for each in called) is shared


def test_the_grants_of_a_key_and_of_the_host_project_of_a_shared_vpc_are_shown_as_commands(checkout: OwnCheckout) -> None:
    key = "projects/acme-keys/locations/us-central1/keyRings/ai/cryptoKeys/disks"
    change(checkout, network=SHARED, cluster={"security": {"boot_disk_kms_key": key}})

    shown = checkout.flexspot("settings", "needs", "-s", "dev-gke").stdout.splitlines()

    assert "number=$(gcloud projects describe acme-ai-dev --format 'value(projectNumber)')" in shown
    assert (
        f"gcloud kms keys add-iam-policy-binding {key} --role roles/cloudkms.cryptoKeyEncrypterDecrypter "
        '--member "serviceAccount:service-${number}@compute-system.iam.gserviceaccount.com"'
    ) in shown
    assert "gcloud services enable --project acme-net compute.googleapis.com container.googleapis.com" in shown
    subnet = "gcloud compute networks subnets add-iam-policy-binding gpu-nodes --region us-central1 --project acme-net"
    assert f'{subnet} --role roles/compute.networkUser --member "$deployer"' in shown
    assert f'{subnet} --role roles/compute.networkUser --member "serviceAccount:${{number}}@cloudservices.gserviceaccount.com"' in shown
    assert (
        "gcloud projects add-iam-policy-binding acme-net --condition None --role roles/container.hostServiceAgentUser "
        '--member "serviceAccount:service-${number}@container-engine-robot.iam.gserviceaccount.com"'
    ) in shown


def test_requirements_of_a_project_are_available_as_json() -> None:
    _, shown = flexspot("settings", "needs", "-s", "prod-gke", "--format", "json")

    found = json.loads(shown)
    settings = yaml.safe_load((Path(__file__).resolve().parents[2] / "stacks" / "Pulumi.prod-gke.yaml").read_text())
    pools = settings["config"]["flexspot:platform"]["pools"]
    spot = next(pool for pool in pools if pool["name"] == "l4-spot")
    assert {"accelerator": "nvidia-l4", "quota": "preemptible", "gpus": spot["max_nodes"]} in found["quotas"]
    assert "roles/compute.networkAdmin" in found["roles"]


def test_a_lab_has_no_requirements_of_a_cloud() -> None:
    with pytest.raises(ExplainedError, match="stack local is not in a cloud"):
        flexspot("settings", "needs", "-s", "local")


def test_the_next_version_of_kubernetes_is_suggested_if_its_parts_are_known() -> None:
    _, eks = flexspot("settings", "check", "-s", "prod-eks")
    _, gke = flexspot("settings", "check", "-s", "prod-gke")

    [hint] = [line for line in eks.splitlines() if "versions upgrade" in line]
    assert hint == "Kubernetes 1.36: `flexspot versions upgrade -s prod-eks --to 1.36` shows what it changes"
    assert "versions upgrade" not in gke
