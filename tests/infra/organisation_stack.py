"""The production stack on EKS with the settings of an organisation, and with every AWS resource that a stack can have."""

from __future__ import annotations

from typing import Any

from program_declarations import shipped

ACCOUNT = "111122223333"
BOUNDARY = f"arn:aws:iam::{ACCOUNT}:policy/boundaries/platform"
KEY = f"arn:aws:kms:us-east-1:{ACCOUNT}:key/0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"


def organisation_settings(**more: Any) -> dict[str, Any]:
    """Return settings with own tags, IAM path and boundary, a key for logs, another account's reservation, and node boot settings."""
    changes: dict[str, Any] = {"tags": {"CostCenter": "4711"}, "iam": {"path": "/platform/", "permissions_boundary": BOUNDARY}}
    settings = shipped("prod-eks", **changes | more)
    settings["cluster"] |= {"logs_kms_key": KEY, "nodes": {"kubelet": {"max_pods": 110}, "fast_image_pull": True}}
    settings["pools"][0]["reservation"]["owner"] = "444455556666"
    return settings


def everything_settings(**more: Any) -> dict[str, Any]:
    """Return the same with file systems, a work queue, a person's role in a team, and AWS's load balancer controller."""
    first, *others = shipped("prod-eks")["teams"]
    people = {"viewers": [f"arn:aws:iam::{ACCOUNT}:role/people"]}
    return organisation_settings(
        storage={"checkpoints": "efs", "datasets": "lustre"},
        controllers={"load_balancer_controller": {"install": True}},
        teams=[{**first, "work_queue": {}, **people}, *others],
        **more,
    )
