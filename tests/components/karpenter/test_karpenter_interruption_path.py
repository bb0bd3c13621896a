"""From an event of AWS to Karpenter's queue: the resources of InterruptionQueue, created and used in moto.

Moto matches and delivers events as EventBridge does. Unlike AWS, it accepts events with AWS's own sources from any sender. It enforces no
policy.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
import yaml
from karpenter_args import QUEUE, REGION, TAGS, declared
from moto import mock_aws

from flexspot.components.karpenter.interruption_queue import InterruptionQueue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_sqs import SQSClient

pytestmark = pytest.mark.slow

MOTOS_ACCOUNT = "123456789012"

_DOCUMENTS: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "karpenter_events.yaml").read_text(encoding="utf-8"))
OTHERS: dict[str, dict[str, Any]] = _DOCUMENTS.pop("others")


class InterruptionPath:
    """The queue and the rules as they are in moto."""

    def __init__(self) -> None:
        self.events: EventBridgeClient = boto3.client("events", region_name=REGION)
        self.sqs: SQSClient = boto3.client("sqs", region_name=REGION)
        aws, _ = declared(
            lambda: InterruptionQueue("queue", {"cluster": "training", "account": MOTOS_ACCOUNT, "region": REGION, "tags": TAGS}),
            MOTOS_ACCOUNT,
        )
        [queue] = aws.of(QUEUE).values()
        self.url = self.sqs.create_queue(QueueName=queue["name"])["QueueUrl"]
        for rule in aws.of("aws:cloudwatch/eventRule:EventRule").values():
            self.events.put_rule(Name=rule["name"], EventPattern=rule["eventPattern"], Description=rule["description"])
        for target in aws.of("aws:cloudwatch/eventTarget:EventTarget").values():
            self.events.put_targets(Rule=target["rule"], Targets=[{"Id": target["targetId"], "Arn": target["arn"]}])

    def send(self, event: dict[str, Any]) -> None:
        fields = {"Source": "source", "DetailType": "detail-type", "Resources": "resources"}
        entry: Any = {name: event[key] for name, key in fields.items()} | {"Detail": json.dumps(event["detail"])}
        assert self.events.put_events(Entries=[entry])["FailedEntryCount"] == 0

    def arrived(self) -> list[dict[str, Any]]:
        """Return the messages in the queue."""
        messages = self.sqs.receive_message(QueueUrl=self.url, MaxNumberOfMessages=10, WaitTimeSeconds=0).get("Messages", [])
        return [json.loads(message.get("Body", "")) for message in messages]


@pytest.fixture
def path() -> Iterator[InterruptionPath]:
    with mock_aws():
        yield InterruptionPath()


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
