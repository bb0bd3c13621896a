"""The controller's policies: those of Karpenter's own template, within IAM's limits for every cluster name."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from iam_judge import listed
from karpenter_args import LONG_NAME, scope

from flexspot.components.iam import as_json, counted_characters
from flexspot.components.karpenter.controller_policies import SPOT_ROLE, controller_policies

if TYPE_CHECKING:
    from flexspot.components.iam import Statement

LIMIT = 6144

UPSTREAM: dict[str, dict[str, str]] = yaml.safe_load((Path(__file__).parent / "upstream_policies.yaml").read_text(encoding="utf-8"))

LONGEST = [("ap-southeast-1", "aws"), ("ap-northeast-1", "aws"), ("cn-northwest-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov")]


def digest(statement: Statement) -> str:
    """Return a statement's digest as upstream_policies.yaml defines it."""
    lists: dict[str, Any] = {"Action": sorted(listed(statement["Action"])), "Resource": sorted(listed(statement.get("Resource", [])))}
    if "Condition" in statement:
        lists["Condition"] = {
            operator: {key: sorted(listed(values)) for key, values in keys.items()} for operator, keys in statement["Condition"].items()
        }
    return hashlib.sha256(json.dumps({**statement, **lists}, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def test_statements_are_those_of_karpenters_own_template_and_one_for_the_spot_role() -> None:
    ours = {
        policy: {statement.get("Sid", ""): digest(statement) for statement in document["Statement"]}
        for policy, document in controller_policies(scope()).items()
    }
    added = ours.keys() - UPSTREAM.keys()

    assert {policy: ours[policy] for policy in ours.keys() - added} == UPSTREAM
    assert added == {SPOT_ROLE}


@pytest.mark.parametrize("region,partition", LONGEST)
def test_every_document_fits_into_iam_at_the_longest_cluster_name_and_the_longest_regions(region: str, partition: str) -> None:
    lengths = {
        policy: counted_characters(document) for policy, document in controller_policies(scope(LONG_NAME, region, partition)).items()
    }

    assert len(lengths) == 7
    assert {policy: length for policy, length in lengths.items() if length > LIMIT} == {}


def test_a_name_that_makes_a_document_too_long_is_refused_with_the_policy_and_what_to_shorten() -> None:
    with pytest.raises(ValueError, match=r"^policy NodeLifecycle of Karpenter's controller has [\d,]+ characters") as error:
        controller_policies(scope("c" * 1000))

    assert "policy NodeLifecycle of Karpenter's controller has 10,671 characters without white space; IAM accepts at most" in str(
        error.value
    )


@pytest.mark.parametrize("region,partition", LONGEST)
def test_every_arn_is_of_the_partition_that_is_given(region: str, partition: str) -> None:
    text = "".join(map(as_json, controller_policies(scope("training", region, partition)).values()))

    assert text.count('"arn:') == text.count(f'"arn:{partition}:')
    assert f":{region}:" in text


def test_a_document_has_no_white_space_and_is_always_the_same() -> None:
    first, second = ([as_json(each) for each in controller_policies(scope()).values()] for _ in range(2))

    assert first == second
    assert not any(character.isspace() for text in first for character in text)
    assert [len(text) for text in first] == [counted_characters(each) for each in controller_policies(scope()).values()]
