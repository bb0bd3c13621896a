"""Add-ons whose version AWS is asked for: the plan says so, and no check takes the word for a version."""

from __future__ import annotations

from typing import Any

import pytest
from program_declarations import STACKS, shipped

from capacity.plan.build import build_plan, image_book_of, price_book_of
from capacity.settings.stack_file import parse_settings


@pytest.mark.parametrize("name", ["kube-proxy", "vpc-cni", "aws-ebs-csi-driver", "metrics-server"])
def test_the_plan_has_the_word_and_warns_of_nothing_more(name: str) -> None:
    written: dict[str, Any] = shipped("dev-eks")
    written["cluster"]["addon_versions"] = {name: "recommended"}
    settings = parse_settings(written, "dev-eks")
    plan = build_plan(settings, "dev-eks", price_book_of(settings, STACKS, "dev-eks"), image_book_of(settings, STACKS, "dev-eks"))

    assert plan.versions.addons[name] == "recommended"
    assert plan.versions.parts()[name] == "recommended"
    assert [each.path for each in plan.warnings if "addon" in each.path] == []
