"""InterruptionQueue: the queue of interruption events, its rules and its policy."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pulumi
import pytest
from iam_judge import Request, decided_otherwise
from karpenter_args import ACCOUNT, LONG_NAME, QUEUE, REGION, TAGS, declared, scope

from flexspot.components.karpenter.controller_policies import controller_policies
from flexspot.components.karpenter.interruption_queue import InterruptionQueue, InterruptionQueueArgs, queue_policy

if TYPE_CHECKING:
    from component_types import Refusal
    from karpenter_args import Aws

RULE = "aws:cloudwatch/eventRule:EventRule"
TARGET = "aws:cloudwatch/eventTarget:EventTarget"
QUEUE_POLICY = "aws:sqs/queuePolicy:QueuePolicy"

ARN = f"arn:aws:sqs:{REGION}:{ACCOUNT}:training"

PATTERNS = {
    "scheduled-change": ("aws.health", "AWS Health Event"),
    "spot-interruption": ("aws.ec2", "EC2 Spot Instance Interruption Warning"),
    "rebalance": ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
    "instance-state-change": ("aws.ec2", "EC2 Instance State-change Notification"),
    "capacity-reservation-interruption": ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"),
}
"""From Karpenter v1.14's own template."""


def args(**changes: Any) -> InterruptionQueueArgs:
    # pyrefly: ignore[bad-return] -- some arguments are invalid on purpose
    return {"cluster": "training", "account": ACCOUNT, "region": REGION, "tags": TAGS} | changes


def registered(**changes: Any) -> Aws:
    return declared(lambda: InterruptionQueue("queue", args(**changes)))[0]


def test_the_queue_has_the_clusters_name_is_encrypted_and_keeps_messages_for_five_minutes() -> None:
    assert registered().of(QUEUE) == {
        "queue-queue": {
            "name": "training",
            "region": REGION,
            "messageRetentionSeconds": 300,
            "sqsManagedSseEnabled": True,
            "tags": TAGS,
        }
    }


def test_each_of_the_five_kinds_of_event_has_a_rule_that_sends_it_to_the_queue() -> None:
    aws = registered()

    rules = aws.of(RULE)
    assert {name: json.loads(inputs["eventPattern"]) for name, inputs in rules.items()} == {
        f"queue-{event}-rule": {"source": [source], "detail-type": [kind]} for event, (source, kind) in PATTERNS.items()
    }
    assert [inputs["name"] for inputs in rules.values()] == [f"training-{event}" for event in PATTERNS]
    assert aws.of(TARGET) == {
        f"queue-{event}-target": {
            "rule": f"training-{event}",
            "region": REGION,
            "arn": ARN,
            "targetId": "KarpenterInterruptionQueueTarget",
        }
        for event in PATTERNS
    }
    assert {json.dumps(inputs["tags"]) for inputs in rules.values()} == {json.dumps(TAGS)}
    assert {inputs["region"] for inputs in rules.values()} == {REGION}


def test_the_policy_is_attached_to_the_queue_and_about_it() -> None:
    [inputs] = registered().of(QUEUE_POLICY).values()

    assert inputs["queueUrl"] == f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/training"
    assert json.loads(inputs["policy"]) == queue_policy(ARN)


def test_events_are_accepted_and_plain_http_is_denied() -> None:
    writing, plain = queue_policy(ARN)["Statement"]

    assert writing == {
        "Effect": "Allow",
        "Principal": {"Service": ["events.amazonaws.com", "sqs.amazonaws.com"]},
        "Action": "sqs:SendMessage",
        "Resource": ARN,
    }
    assert (plain["Effect"], plain.get("Principal"), plain["Action"], plain.get("Resource")) == ("Deny", "*", "sqs:*", ARN)
    assert plain.get("Condition") == {"Bool": {"aws:SecureTransport": "false"}}


@pytest.mark.nightly(tested_by="test_events_are_accepted_and_plain_http_is_denied")
@pytest.mark.parametrize(
    "action,principal,secure,decided",
    [
        ("sqs:SendMessage", "events.amazonaws.com", "true", "allowed"),
        ("sqs:SendMessage", "sqs.amazonaws.com", "true", "allowed"),
        ("sqs:SendMessage", "events.amazonaws.com", "false", "denied"),
        ("sqs:SendMessage", "sns.amazonaws.com", "true", "none"),
        ("sqs:ReceiveMessage", "events.amazonaws.com", "true", "none"),
    ],
)
def test_principalmapper_agrees_about_senders(action: str, principal: str, secure: str, decided: str) -> None:
    requests = [Request(action, ARN, {"aws:SecureTransport": secure}, principal)]

    assert decided_otherwise([queue_policy(ARN)], decided, requests) == []


@pytest.mark.parametrize("cluster", ["training", LONG_NAME])
def test_the_queue_is_the_one_that_the_controller_may_read(cluster: str) -> None:
    [queue] = registered(cluster=cluster).of(QUEUE).values()

    [statement] = controller_policies(scope(cluster))["Interruption"]["Statement"]
    assert statement.get("Resource") == f"arn:aws:sqs:{REGION}:{ACCOUNT}:{queue['name']}"


def test_a_cluster_with_the_longest_name_has_a_queue_and_rules_whose_names_fit() -> None:
    aws = registered(cluster=LONG_NAME)

    names = [inputs["name"] for inputs in aws.of(RULE).values()]
    assert {len(name) for name in names} == {64}
    assert len(set(names)) == 5
    assert [len(inputs["name"]) for inputs in aws.of(QUEUE).values()] == [80]
    assert max(len(inputs["description"]) for inputs in aws.of(RULE).values()) <= 512


def test_rules_wait_for_the_queues_policy() -> None:
    waits: dict[str, list[str]] = {}

    def note(resource: pulumi.ResourceTransformationArgs) -> None:
        awaited: Any = resource.opts.depends_on or []
        waits[resource.name] = [each._name for each in awaited]  # noqa: SLF001 -- the SDK has no other

    declared(lambda: InterruptionQueue("queue", args(), pulumi.ResourceOptions(transformations=[note])))

    assert {name: awaited for name, awaited in waits.items() if awaited} == {
        f"queue-{event}-target": ["queue-policy"] for event in PATTERNS
    }


def test_its_outputs_are_the_queues_name_arn_and_url() -> None:
    _, outputs = declared(lambda: InterruptionQueue("queue", args()))

    url = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/training"
    assert outputs == {"queue_name": "training", "queue_arn": ARN, "queue_url": url}


def test_a_region_of_another_partition_is_refused_before_anything_is_registered(refusal: Refusal) -> None:
    assert "partition (is 'aws-cn'): region eu-west-1" in refusal(InterruptionQueue, "queue", args(partition="aws-cn"))
