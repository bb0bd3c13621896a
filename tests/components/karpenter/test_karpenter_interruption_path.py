"""From an event of AWS to Karpenter's queue: what InterruptionQueue declares, made in moto's AWS and used.

Moto matches events and delivers them as EventBridge does, and takes events of AWS's own sources from anybody, which AWS does not. It
enforces no policy: that EventBridge may write to the queue is asked of the policy that the queue has there.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
import yaml
from iam_evaluator import Request, Verdict, decide
from karpenter_args import QUEUE, REGION, TAGS, declared
from moto import mock_aws

from components.karpenter.interruption_queue import EVENTS, InterruptionQueue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_sqs import SQSClient

pytestmark = pytest.mark.thorough

MOTOS_ACCOUNT = "123456789012"

_DOCUMENTS: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "karpenter_events.yaml").read_text(encoding="utf-8"))
OTHERS: dict[str, dict[str, Any]] = _DOCUMENTS.pop("others")


class InterruptionPath:
    """The queue and the rules, as they are in moto's AWS."""

    def __init__(self) -> None:
        self.events: EventBridgeClient = boto3.client("events", region_name=REGION)
        self.sqs: SQSClient = boto3.client("sqs", region_name=REGION)
        aws, _ = declared(
            lambda: InterruptionQueue("queue", {"cluster": "training", "account": MOTOS_ACCOUNT, "region": REGION, "tags": TAGS}),
            MOTOS_ACCOUNT,
        )
        [queue] = aws.of(QUEUE).values()
        [policy] = aws.of("aws:sqs/queuePolicy:QueuePolicy").values()
        self.url = self.sqs.create_queue(
            QueueName=queue["name"],
            Attributes={
                "MessageRetentionPeriod": str(int(queue["messageRetentionSeconds"])),
                "SqsManagedSseEnabled": str(queue["sqsManagedSseEnabled"]).lower(),
            },
        )["QueueUrl"]
        self.sqs.set_queue_attributes(QueueUrl=self.url, Attributes={"Policy": policy["policy"]})
        self.arn = self.attributes()["QueueArn"]
        for rule in aws.of("aws:cloudwatch/eventRule:EventRule").values():
            self.events.put_rule(Name=rule["name"], EventPattern=rule["eventPattern"], Description=rule["description"])
        for target in aws.of("aws:cloudwatch/eventTarget:EventTarget").values():
            self.events.put_targets(Rule=target["rule"], Targets=[{"Id": target["targetId"], "Arn": target["arn"]}])

    def attributes(self) -> dict[str, str]:
        return {
            str(key): value for key, value in self.sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=["All"])["Attributes"].items()
        }

    def send(self, event: dict[str, Any]) -> None:
        answer = self.events.put_events(
            Entries=[
                {
                    "Source": event["source"],
                    "DetailType": event["detail-type"],
                    "Resources": event["resources"],
                    "Detail": json.dumps(event["detail"]),
                }
            ]
        )
        assert answer["FailedEntryCount"] == 0

    def arrived(self) -> list[dict[str, Any]]:
        """The messages that are in the queue, which are deleted, as Karpenter does."""
        found: list[dict[str, Any]] = []
        while messages := self.sqs.receive_message(QueueUrl=self.url, MaxNumberOfMessages=10, WaitTimeSeconds=0).get("Messages", []):
            for message in messages:
                found.append(json.loads(message.get("Body", "")))
                self.sqs.delete_message(QueueUrl=self.url, ReceiptHandle=message.get("ReceiptHandle", ""))
        return found


@pytest.fixture
def path() -> Iterator[InterruptionPath]:
    with mock_aws():
        yield InterruptionPath()


def test_there_is_a_document_of_each_kind_of_event() -> None:
    assert {event: (document["source"], document["detail-type"]) for event, document in _DOCUMENTS.items()} == EVENTS


@pytest.mark.parametrize("event", _DOCUMENTS)
def test_an_event_arrives_once_with_all_that_karpenter_reads(event: str, path: InterruptionPath) -> None:
    document = _DOCUMENTS[event]

    path.send(document)

    [message] = path.arrived()
    assert {key: message[key] for key in document} == document


@pytest.mark.parametrize("event", OTHERS.values(), ids=OTHERS)
def test_another_event_does_not_arrive(event: dict[str, Any], path: InterruptionPath) -> None:
    path.send(event)

    assert path.arrived() == []


@pytest.mark.parametrize("event", _DOCUMENTS)
def test_without_its_rule_an_event_does_not_arrive_and_the_others_do(event: str, path: InterruptionPath) -> None:
    path.events.remove_targets(Rule=f"training-{event}", Ids=["KarpenterInterruptionQueueTarget"])

    for document in _DOCUMENTS.values():
        path.send(document)

    assert {message["detail-type"] for message in path.arrived()} == {
        document["detail-type"] for other, document in _DOCUMENTS.items() if other != event
    }


def test_the_queue_keeps_messages_five_minutes_encrypted_and_lets_eventbridge_write(path: InterruptionPath) -> None:
    attributes = path.attributes()

    assert (attributes["MessageRetentionPeriod"], attributes["SqsManagedSseEnabled"]) == ("300", "true")
    writing = Request("sqs:SendMessage", path.arn, {"aws:SecureTransport": "true"}, "events.amazonaws.com")
    assert decide([json.loads(attributes["Policy"])], writing) is Verdict.ALLOWED


def test_all_rules_are_on(path: InterruptionPath) -> None:
    rules = path.events.list_rules()["Rules"]

    assert {rule.get("Name"): rule.get("State") for rule in rules} == {f"training-{event}": "ENABLED" for event in EVENTS}
