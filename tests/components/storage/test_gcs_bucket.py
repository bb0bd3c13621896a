"""GcsBucket: its resources and invalid arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pulumi
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexspot.components.cloud_names import fitted
from flexspot.components.storage.gcs_bucket import GcsBucket, GcsBucketArgs, bucket_name

if TYPE_CHECKING:
    from component_types import Refusal, Register

BUCKET = "gcp:storage/bucket:Bucket"
FOLDER = "gcp:storage/managedFolder:ManagedFolder"


def args(**changes: Any) -> GcsBucketArgs:
    # pyrefly: ignore[bad-return] -- some arguments are invalid on purpose
    return {
        "bucket": "acme-ai-dev-checkpoints",
        "project": "acme-ai",
        "location": "us-central1",
        "cluster_region": "us-central1",
        "purpose": "checkpoints",
        "labels": {"environment": "dev", "owner": "ann"},
    } | changes


def test_a_checkpoint_bucket_is_private_and_keeps_nothing_that_was_overwritten(register: Register) -> None:
    registered = register(lambda: GcsBucket("checkpoints", args()))

    [bucket] = registered.of(BUCKET)
    assert bucket == {
        "name": "acme-ai-dev-checkpoints",
        "project": "acme-ai",
        "location": "us-central1",
        "storageClass": "STANDARD",
        "labels": {"environment": "dev", "owner": "ann"},
        "uniformBucketLevelAccess": True,
        "publicAccessPrevention": "enforced",
        "forceDestroy": False,
        "versioning": {"enabled": False},
        "softDeletePolicy": {"retentionDurationSeconds": 0},
        "lifecycleRules": [
            {"action": {"type": "AbortIncompleteMultipartUpload"}, "condition": {"age": 1}},
            {"action": {"type": "Delete"}, "condition": {"age": 30}},
        ],
    }
    assert registered.of(FOLDER) == []


def test_a_dataset_bucket_keeps_its_objects_restores_deleted_ones_for_a_week_and_has_a_shared_folder(register: Register) -> None:
    registered = register(lambda: GcsBucket("datasets", args(purpose="datasets")))

    [bucket] = registered.of(BUCKET)
    assert bucket["softDeletePolicy"] == {"retentionDurationSeconds": 604800}
    assert [rule["action"]["type"] for rule in bucket["lifecycleRules"]] == ["AbortIncompleteMultipartUpload"]
    assert registered.of(FOLDER) == [{"bucket": "acme-ai-dev-checkpoints", "name": "shared/", "forceDestroy": True}]


def test_key_retention_folders_and_destruction_can_be_set(register: Register) -> None:
    changes = {"purpose": "datasets", "retention_days": 90, "kms_key": pulumi.Output.from_input("key"), "force_destroy": True}
    registered = register(lambda: GcsBucket("datasets", args(**changes, folders=["shared", "vision/imagenet", "shared"])))

    [bucket] = registered.of(BUCKET)
    assert bucket["encryption"] == {"defaultKmsKeyName": "key"}
    assert bucket["lifecycleRules"][1] == {"action": {"type": "Delete"}, "condition": {"age": 90}}
    assert bucket["forceDestroy"] is True
    assert [folder["name"] for folder in registered.of(FOLDER)] == ["shared/", "vision/imagenet/"]


@pytest.mark.parametrize(
    "change,problem",
    [
        ({"bucket": "Acme"}, "bucket (is 'Acme', 4 characters): must have 3 to 63 of a-z"),
        ({"bucket": "a" * 64}, ", 64 characters): must have 3 to 63"),
        ({"bucket": "-acme"}, "use bucket_name(project, environment, purpose)"),
        (
            {"bucket": "goog-acme"},
            "bucket (is 'goog-acme', 9 characters): must have 3 to 63 of a-z, 0-9, - and _, begin and end with a letter or digit",
        ),
        ({"purpose": "logs"}, "purpose (is 'logs'): is not a purpose; use checkpoints or datasets"),
        (
            {"location": "us-east1"},
            "location (is us-east1): differs from cluster_region, and traffic between regions costs money and slows every",
        ),
        (
            {"location": "US"},
            "location (is US): differs from cluster_region, and traffic between regions costs money and slows every checkpoint; set",
        ),
        ({"retention_days": 0}, "retention_days (is 0): must be at least 1; raise it, or leave it out"),
        (
            {"folders": ["/shared"]},
            "folders (is '/shared'): must be a path such as vision/imagenet, of a-z, 0-9, ., - and _, without a slash at either",
        ),
        (
            {"folders": ["../red"]},
            "folders (is '../red'): must be a path such as vision/imagenet, of a-z, 0-9, ., - and _, without a slash at either end",
        ),
        ({"labels": {"flexspot.dev/owner": "ann"}}, "labels: the key 'flexspot.dev/owner' must be a lower-case letter"),
        ({"labels": {"owner": "Ann"}}, "labels.owner (is 'Ann'): must have at most 63 of a-z"),
        ({"labels": {f"key-{number}": "" for number in range(65)}}, "labels: 65 exceed Google Cloud's limit of 64 per"),
    ],
)
def test_buckets_that_cloud_storage_would_reject_or_that_cost_extra_are_refused_before_anything_is_registered(
    change: dict[str, Any], problem: str, refusal: Refusal
) -> None:
    assert problem in refusal(GcsBucket, "checkpoints", args(**change))


def test_a_derived_name_contains_the_project_and_is_readable() -> None:
    assert bucket_name("acme-ai", "dev", "checkpoints") == "acme-ai-dev-checkpoints"
    assert bucket_name("acme.com:ai", "dev", "datasets") == "acme-com-ai-dev-datasets"


@given(st.text("abc-.", min_size=1, max_size=300), st.integers(20, 253))
def test_a_fitted_name_fits_and_is_unchanged_if_it_already_did(name: str, most: int) -> None:
    made = fitted(name, most)

    assert len(made) <= most
    assert (made == name) is (len(name) <= most)
