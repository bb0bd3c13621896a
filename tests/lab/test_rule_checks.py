"""The interpreter of the providers' rules on small examples."""

from __future__ import annotations

from typing import Any

import pytest
from declared_inputs import violations

from flexspot.lab.providers.cloud_rules.resource_rules import ResourceRules, camel_case, rules_by_type, rules_of
from flexspot.lab.providers.cloud_rules.rule_checks import check_inputs, has_format
from flexspot.lab.providers.values import UNKNOWN, Secret


def rules(**attributes: dict[str, Any]) -> ResourceRules:
    given = {path.replace("__", "."): {"type": "string", "optional": True, **facts} for path, facts in attributes.items()}
    return rules_of("cloud:things/thing:Thing", {"attributes": given})


def problems(found: ResourceRules, **inputs: Any) -> list[str]:
    return [f"{each.place} {each.reason}" for each in check_inputs(found, inputs)]


@pytest.mark.parametrize(
    "facts,value,problem",
    [
        ({"allowed": ["A", "B"]}, "C", "is 'C'; allowed: A, B"),
        ({"rejects_empty": True}, "", "may not be empty"),
        ({"max_length": 3}, "long", "is 'long', longer than 3 characters"),
        ({"min_length": 3}, "ab", "is 'ab', shorter than 3 characters"),
        ({"regex": ["^[a-z]+$"]}, "A1", "is 'A1', which does not match ^[a-z]+$"),
        ({"format": "cidr"}, "10.0.0.0", "is '10.0.0.0', which is not of the form cidr"),
        ({"type": "int"}, "3", "is '3', not of type int"),
        ({"type": "int"}, True, "is True, not of type int"),
        ({"type": "bool"}, 1, "is 1, not of type bool"),
        ({"type": "int", "min": 1}, 0, "is 0, less than 1"),
        ({"type": "int", "max": 5}, 6, "is 6, more than 5"),
        ({"type": "map(string)"}, "x", "is 'x', not a map"),
        ({"type": "list(string)"}, "x", "is 'x', not a list"),
        ({"type": "list(string)", "max_items": 2}, ["a", "b", "c"], "has 3 items, more than 2"),
        ({"type": "set(string)", "min_items": 1}, [], "has 0 items, fewer than 1"),
        ({"type": "list(string)", "elem_allowed": ["a"]}, ["b"], "is 'b'; allowed: a"),
        ({"optional": False, "computed": True}, "x", "is read only"),
    ],
)
def test_a_value_that_the_provider_refuses_is_refused(facts: dict[str, Any], value: Any, problem: str) -> None:
    assert problems(rules(size=facts), size=value) == [f"size {problem}"]


@pytest.mark.parametrize(
    "facts,value",
    [
        ({"allowed": ["A", "B"]}, "B"),
        ({"type": "int", "min": 1, "max": 5}, 5),
        ({"type": "float"}, 3),
        ({"type": "list(string)", "max_items": 1}, "one item is a plain value"),
        ({"type": "list(string)", "elem_allowed": ["a"]}, ["a", "a"]),
        ({"allowed": ["A"]}, UNKNOWN),
        ({"type": "list(string)", "elem_allowed": ["a"]}, ["a", UNKNOWN]),
        ({"allowed": ["A"]}, Secret("A")),
    ],
)
def test_a_value_that_the_provider_accepts_passes(facts: dict[str, Any], value: Any) -> None:
    assert problems(rules(size=facts), size=value) == []


def test_required_arguments_must_exist_and_unknown_ones_must_not() -> None:
    found = rules(name={"required": True, "optional": False}, ip_range={})

    assert problems(found, ipRange="10.0.0.0/8", range="x") == ["name is required", "range is no argument"]


def test_required_arguments_of_a_block_apply_only_if_the_block_is_set() -> None:
    found = rules(disk={"type": "list(block)", "max_items": 1}, disk__size={"type": "int", "required": True, "optional": False})

    assert problems(found) == []
    assert problems(found, disk={}) == ["disk.size is required"]


def test_each_block_of_a_list_is_checked_under_its_own_name() -> None:
    found = rules(taint={"type": "list(block)", "pulumi": "taints"}, taint__effect={"allowed": ["NO_SCHEDULE"]})

    assert problems(found, taints=[{"effect": "NO_SCHEDULE"}, {"effect": "NoSchedule"}]) == [
        "taint.effect is 'NoSchedule'; allowed: NO_SCHEDULE"
    ]


def test_arguments_that_exclude_each_other_conflict_once_both_are_known() -> None:
    found = rules(name={"conflicts_with": ["name_prefix"]}, name_prefix={})

    assert problems(found, name="a") == []
    assert problems(found, name="a", namePrefix=UNKNOWN) == []
    assert problems(found, name="a", namePrefix="b") == ["name conflicts with name_prefix"]


def test_an_explicit_false_conflicts_too() -> None:
    """The provider checks whether an argument is set, not its value: enable_autopilot = false with node_config (pulumi-gcp issue 2881)."""
    found = rules(pool={"type": "string", "conflicts_with": ["autopilot"]}, autopilot={"type": "bool"})

    assert problems(found, pool="a", autopilot=False) == ["pool conflicts with autopilot"]


def test_exactly_one_of_some_arguments_is_required() -> None:
    either = {"exactly_one_of": ["gateway", "nat"]}
    found = rules(gateway=either, nat=either)

    assert problems(found, gateway="g") == []
    assert problems(found, nat=UNKNOWN) == []
    assert problems(found) == [f"{name} exactly one of gateway, nat must be given" for name in ("gateway", "nat")]
    assert problems(found, gateway="g", nat="n") == [f"{name} exactly one of gateway, nat must be given" for name in ("gateway", "nat")]


def test_indices_in_paths_inside_a_block_are_ignored() -> None:
    found = rules(
        window={"type": "list(block)", "max_items": 1},
        window__daily={"at_least_one_of": ["window.0.daily", "window.0.weekly"]},
        window__weekly={"required_with": ["window.0.daily"]},
    )

    assert problems(found) == []
    assert problems(found, window={}) == ["window.daily at least one of window.0.daily, window.0.weekly must be given"]
    assert problems(found, window={"weekly": "x"}) == ["window.weekly needs window.0.daily"]


def test_a_rule_of_a_security_group_has_exactly_one_source() -> None:
    rule = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
    given = {"securityGroupId": "sg-1", "ipProtocol": "tcp", "fromPort": 443, "toPort": 443}

    assert violations(rule, {**given, "cidrIpv4": "10.0.0.0/8"}) == []
    assert [each.place for each in violations(rule, given)] == ["cidr_ipv4", "cidr_ipv6", "prefix_list_id", "referenced_security_group_id"]


@pytest.mark.parametrize(
    "name,good,bad",
    [
        ("arn", "arn:aws:iam::123456789012:role/x", "role/x"),
        ("aws-account-id", "123456789012", "1234"),
        ("bool-string", "true", "yes"),
        ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
        ("gcp-iam-member", "serviceAccount:a@b.iam.gserviceaccount.com", "a@b.iam.gserviceaccount.com"),
        ("go-duration", "1h30m", "90 minutes"),
        ("ipv4", "10.0.0.1", "10.0.0"),
        ("ipv6", "::1", "10.0.0.1"),
        ("json", "[1]", "{"),
        ("json-object", '{"a": 1}', "[1]"),
        ("rfc3339", "2025-01-01T02:00:00Z", "tomorrow"),
    ],
)
def test_a_format_accepts_and_rejects_texts(name: str, good: str, bad: str) -> None:
    assert has_format(name, good)
    assert not has_format(name, bad)


def test_every_format_in_the_files_is_known() -> None:
    facts = [each.facts for found in rules_by_type().values() for each in found.attributes.values()]

    named = {each[key] for each in facts for key in ("format", "elem_format") if key in each}
    assert [name for name in named if has_format(name, "\0")] == [], "of an unknown form every text is"


def test_names_are_written_as_pulumi_writes_them() -> None:
    assert camel_case("enable_l4_ilb_subsetting") == "enableL4IlbSubsetting"
    assert camel_case("ip_cidr_range") == "ipCidrRange"


def test_a_type_without_rules_refuses_nothing() -> None:
    assert violations("cloud:things/other:Other", {"anything": 1}) == []
