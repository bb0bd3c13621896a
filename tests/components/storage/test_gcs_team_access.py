"""GcsTeamAccess: a team's identity and permissions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pulumi
import pytest

from flexspot.components.storage.gcs_bucket import GcsTeamAccess, GcsTeamAccessArgs, account_id

if TYPE_CHECKING:
    from component_types import Outputs, Refusal, Register

ACCOUNT = "gcp:serviceaccount/account:Account"
ACCOUNT_MEMBER = "gcp:serviceaccount/iAMMember:IAMMember"
FOLDER = "gcp:storage/managedFolder:ManagedFolder"
FOLDER_MEMBER = "gcp:storage/managedFolderIamMember:ManagedFolderIamMember"

EMAIL = "team-red-dev@acme-ai.iam.gserviceaccount.com"


def args(**changes: Any) -> GcsTeamAccessArgs:
    # pyrefly: ignore[bad-return] -- some arguments are invalid on purpose
    return {
        "team": "red",
        "environment": "dev",
        "project": "acme-ai",
        "namespace": "team-red",
        "service_account": "trainer",
        "checkpoint_bucket": "acme-ai-dev-checkpoints",
    } | changes


def test_only_a_teams_own_pods_can_use_its_account(register: Register) -> None:
    registered = register(lambda: GcsTeamAccess("red", args()))

    [account] = registered.of(ACCOUNT)
    assert (account["accountId"], account["project"]) == ("team-red-dev", "acme-ai")
    assert registered.of(ACCOUNT_MEMBER) == [
        {
            "serviceAccountId": f"projects/acme-ai/serviceAccounts/{EMAIL}",
            "role": "roles/iam.workloadIdentityUser",
            "member": "serviceAccount:acme-ai.svc.id.goog[team-red/trainer]",
        }
    ]


def test_a_team_reads_and_writes_its_own_checkpoints_and_no_dataset_by_default(register: Register) -> None:
    registered = register(lambda: GcsTeamAccess("red", args()))

    assert registered.of(FOLDER) == [{"bucket": "acme-ai-dev-checkpoints", "name": "red/", "forceDestroy": True}]
    assert registered.of(FOLDER_MEMBER) == [
        {
            "bucket": "acme-ai-dev-checkpoints",
            "managedFolder": "red/",
            "role": "roles/storage.objectUser",
            "member": f"serviceAccount:{EMAIL}",
        }
    ]


def test_a_team_reads_the_shared_datasets(register: Register) -> None:
    bucket = pulumi.Output.from_input("acme-ai-dev-datasets")

    registered = register(lambda: GcsTeamAccess("red", args(dataset_bucket=bucket)))

    viewers = [each for each in registered.of(FOLDER_MEMBER) if each["role"] == "roles/storage.objectViewer"]
    assert [each["managedFolder"] for each in viewers] == ["shared/"]
    assert {(each["bucket"], each["member"]) for each in viewers} == {("acme-ai-dev-datasets", f"serviceAccount:{EMAIL}")}
    assert len(registered.of(FOLDER)) == 1, "folders of datasets belong to their bucket"


def test_its_outputs_are_the_teams_identity_and_its_folder(outputs: Outputs) -> None:
    assert outputs(lambda: GcsTeamAccess("red", args())) == {
        "member": f"serviceAccount:{EMAIL}",
        "email": EMAIL,
        "checkpoint_url": "gs://acme-ai-dev-checkpoints/red/",
    }


# As in Google's own samples: GoogleCloudPlatform/accelerated-platforms, docs of data preparation; read 2026-11-25.
PRINCIPAL = (
    "principal://iam.googleapis.com/projects/123456789012/locations/global/workloadIdentityPools/acme-ai.svc.id.goog"
    "/subject/ns/team-red/sa/trainer"
)


def test_with_the_projects_number_the_kubernetes_service_account_itself_has_the_roles_and_no_account_is_created(
    register: Register, outputs: Outputs
) -> None:
    by_number = args(project_number=pulumi.Output.from_input(123456789012), dataset_bucket="datasets")
    registered = register(lambda: GcsTeamAccess("red", by_number))

    assert (registered.of(ACCOUNT), registered.of(ACCOUNT_MEMBER)) == ([], [])
    assert {(each["managedFolder"], each["role"], each["member"]) for each in registered.of(FOLDER_MEMBER)} == {
        ("red/", "roles/storage.objectUser", PRINCIPAL),
        ("shared/", "roles/storage.objectViewer", PRINCIPAL),
    }
    found = outputs(lambda: GcsTeamAccess("red", by_number))
    assert (found["member"], found["email"]) == (PRINCIPAL, None)


def test_google_cloud_accepts_account_ids_and_each_belongs_to_one_team_and_environment() -> None:
    pairs = [("a-b", "c"), ("a", "b-c"), ("a-b-c", "d"), ("a-b", "c-d"), ("a", "b-c-d"), ("red", "dev"), ("a", "b")]
    pairs += [("t" * 38 + "-a", "dev"), ("t" * 38 + "-b", "dev"), ("t" * 40, "production"), ("r", "e" * 40)]

    assert len({account_id(team, environment) for team, environment in pairs}) == len(pairs)
    assert account_id("red", "dev") == "team-red-dev"
    assert all(re.fullmatch(r"[a-z]([-a-z0-9]{4,28}[a-z0-9])", account_id(team, environment)) for team, environment in pairs)


@pytest.mark.parametrize(
    "change,problem",
    [
        ({"team": "Red"}, "team (is 'Red'): must have 1 to 40 characters of a-z, 0-9 and inner -, and begin with a letter; respell it"),
        ({"namespace": "team_red"}, "namespace (is 'team_red'): must have 1 to 63 characters of a-z, 0-9 and inner -; respell it"),
    ],
)
def test_access_that_could_not_be_granted_is_refused_before_anything_is_registered(
    change: dict[str, Any], problem: str, refusal: Refusal
) -> None:
    assert problem in refusal(GcsTeamAccess, "red", args(**change))
