"""The EKS guide's statements about an account, compared with the declarations of the shipped stacks."""

from __future__ import annotations

import re

import pytest
from program_declarations import STACKS, as_shipped, declared, shipped

pytestmark = pytest.mark.slow


def test_the_guide_lists_every_service_that_the_deploying_role_needs() -> None:
    guide = (STACKS.parent / "docs" / "guides" / "eks.md").read_text(encoding="utf-8")
    table = guide.partition("| service | for |")[2].partition("\n\n")[0]
    named = {service for row in table.splitlines()[2:] for service in re.findall(r"`(\w+)`", row.split("|")[1])}

    # Services that only some stacks need are listed too; the row says when.
    with_files = declared("prod-eks", shipped("prod-eks", storage={"checkpoints": "efs", "datasets": "lustre"}))
    made = [*as_shipped("prod-eks").made.values(), *with_files.made.values()]
    types = {each.type.split(":")[1] for each in made if each.type.startswith("aws:")}
    # Pulumi's module names differ from IAM's names of the services.
    services = {kind.partition("/")[0] for kind in types}
    events = {"cloudwatch/eventRule", "cloudwatch/eventTarget"}
    assert types & {kind for kind in types if kind.startswith("cloudwatch/")} == events | {"cloudwatch/logGroup"}
    assert named == services - {"cloudwatch", "vpc", "efs"} | {"events", "logs", "elasticfilesystem"}
