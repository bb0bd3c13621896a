"""Valid arguments of an SqsWorkQueue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flexspot.components.storage.sqs_work_queue import SqsWorkQueueArgs

# Moto's default account and region, so that the ARNs of its resources are those that the component writes.
ACCOUNT = "123456789012"
REGION = "us-east-1"
KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"


def work_queue_args(**changes: Any) -> SqsWorkQueueArgs:
    # pyrefly: ignore[bad-return] -- some arguments are invalid on purpose
    return {
        "queue": "dev_red_images",
        "worker_role_name": "acme-dev-team-red",
        "account": ACCOUNT,
        "region": REGION,
        "grace_seconds": 120,
        "tags": {"environment": "dev", "team": "red"},
    } | changes
