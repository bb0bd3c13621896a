"""Valid arguments of an S3TeamAccess."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flexspot.components.storage.s3_team_access import S3TeamAccessArgs

CHECKPOINTS = "111122223333-dev-checkpoints-us-east-1"
DATASETS = "111122223333-dev-datasets-us-east-1"
KEY = "arn:aws:kms:us-east-1:111122223333:key/0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"


def team_access_args(**changes: Any) -> S3TeamAccessArgs:
    # pyrefly: ignore[bad-return] -- some arguments are invalid on purpose
    return {
        "team": "red",
        "environment": "dev",
        "account": "111122223333",
        "region": "us-east-1",
        "cluster": "acme-dev",
        "cluster_name": "acme-dev",
        "namespace": "team-red",
        "service_account": "trainer",
        "checkpoint_bucket": CHECKPOINTS,
        "tags": {"environment": "dev", "team": "red"},
    } | changes
