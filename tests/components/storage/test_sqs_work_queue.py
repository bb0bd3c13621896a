"""SqsWorkQueue: a queue of tasks, what becomes of those that fail, and who may work."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pulumi
import pytest
from aws_policy_decisions import verdict
from sqs_queue_args import KEY, work_queue_args
from storage_parentage import parentage

from components.storage.sqs_work_queue import SqsWorkQueue

QUEUE = "aws:sqs/queue:Queue"
QUEUE_POLICY = "aws:sqs/queuePolicy:QueuePolicy"
REDRIVE_ALLOW = "aws:sqs/redriveAllowPolicy:RedriveAllowPolicy"
ROLE_POLICY = "aws:iam/rolePolicy:RolePolicy"

ARN = "arn:aws:sqs:us-east-1:123456789012:dev_red_images"
DEAD_LETTERS = f"{ARN}-dead-letter"

Register = Callable[[Callable[[], object]], Any]


def queue_of(registered: Any, name: str = "dev_red_images") -> dict[str, Any]:
    return {each["name"]: each for each in registered.of(QUEUE)}[name]


def test_tasks_wait_for_workers_are_tried_again_and_are_given_up_to_people(register: Register) -> None:
    registered = register(lambda: SqsWorkQueue("images", work_queue_args()))

    everywhere = {
        "region": "us-east-1",
        "receiveWaitTimeSeconds": 20,
        "sqsManagedSseEnabled": True,
        "tags": {"environment": "dev", "team": "red"},
    }
    queue = queue_of(registered)
    assert json.loads(queue.pop("redrivePolicy")) == {"deadLetterTargetArn": DEAD_LETTERS, "maxReceiveCount": 20}
    assert queue == {**everywhere, "name": "dev_red_images", "visibilityTimeoutSeconds": 300, "messageRetentionSeconds": 604800}
    assert queue_of(registered, "dev_red_images-dead-letter") == {
        **everywhere,
        "name": "dev_red_images-dead-letter",
        "messageRetentionSeconds": 1209600,
    }
    [allowed] = registered.of(REDRIVE_ALLOW)
    assert allowed["queueUrl"] == "images-dead-letters-id"
    assert json.loads(allowed["redriveAllowPolicy"]) == {"redrivePermission": "byQueue", "sourceQueueArns": [ARN]}


def test_lease_retention_attempts_and_key_are_the_callers_where_given(register: Register) -> None:
    changes = {"lease_seconds": 600, "retention_days": 13, "max_attempts": 5, "kms_key": pulumi.Output.from_input(KEY)}

    registered = register(lambda: SqsWorkQueue("images", work_queue_args(**changes)))

    queue = queue_of(registered)
    assert (queue["visibilityTimeoutSeconds"], queue["messageRetentionSeconds"]) == (600, 13 * 86400)
    assert json.loads(queue["redrivePolicy"])["maxReceiveCount"] == 5
    assert [(each["kmsMasterKeyId"], each.get("sqsManagedSseEnabled")) for each in registered.of(QUEUE)] == [(KEY, None), (KEY, None)]
    [policy] = registered.of(ROLE_POLICY)
    through = {service: {"kms:ViaService": f"{service}.us-east-1.amazonaws.com"} for service in ("sqs", "s3")}
    assert verdict([policy["policy"]], "kms:Decrypt", KEY, through["sqs"]) == "allowed"
    assert verdict([policy["policy"]], "kms:Decrypt", KEY, through["s3"]) == "none", "the buckets may have the same key"
    assert verdict([policy["policy"]], "kms:GenerateDataKey", KEY, through["sqs"]) == "none"


@pytest.mark.parametrize("grace,lease", [(0, 300), (120, 300), (270, 300), (271, 301), (43170, 43200)])
def test_a_lease_that_is_not_given_outlasts_the_grace_period(grace: int, lease: int, register: Register) -> None:
    registered = register(lambda: SqsWorkQueue("images", work_queue_args(grace_seconds=grace)))

    assert queue_of(registered)["visibilityTimeoutSeconds"] == lease


@pytest.mark.parametrize("url,arn", [("images-queue-id", ARN), ("images-dead-letters-id", DEAD_LETTERS)])
def test_both_queues_refuse_plain_http_and_permit_nothing(url: str, arn: str, register: Register) -> None:
    policies = {each["queueUrl"]: each["policy"] for each in register(lambda: SqsWorkQueue("images", work_queue_args())).of(QUEUE_POLICY)}

    assert verdict([policies[url]], "sqs:SendMessage", arn, {"aws:SecureTransport": "false"}) == "denied"
    assert verdict([policies[url]], "sqs:SendMessage", arn, {"aws:SecureTransport": "true"}) == "none"


@pytest.mark.parametrize(
    "action,resource,wanted",
    [
        ("sqs:ReceiveMessage", ARN, "allowed"),
        ("sqs:ChangeMessageVisibility", ARN, "allowed"),
        ("sqs:DeleteMessage", ARN, "allowed"),
        ("sqs:GetQueueAttributes", ARN, "allowed"),
        ("sqs:GetQueueUrl", ARN, "allowed"),
        ("sqs:SendMessage", ARN, "none"),
        ("sqs:PurgeQueue", ARN, "none"),
        ("sqs:DeleteQueue", ARN, "none"),
        ("sqs:SetQueueAttributes", ARN, "none"),
        ("sqs:AddPermission", ARN, "none"),
        ("sqs:StartMessageMoveTask", DEAD_LETTERS, "none"),
        ("sqs:ReceiveMessage", DEAD_LETTERS, "none"),
        ("sqs:ReceiveMessage", f"{ARN}-2", "none"),
        ("sqs:ReceiveMessage", ARN.replace("us-east-1", "eu-west-1"), "none"),
        ("kms:Decrypt", KEY, "none"),
    ],
)
def test_a_worker_takes_keeps_gives_back_and_finishes_tasks_and_nothing_else(
    action: str, resource: str, wanted: str, register: Register
) -> None:
    role = pulumi.Output.from_input("acme-dev-team-red")

    [policy] = register(lambda: SqsWorkQueue("images", work_queue_args(worker_role_name=role))).of(ROLE_POLICY)

    assert (policy["role"], policy["name"]) == ("acme-dev-team-red", "queue-dev_red_images")
    assert verdict([policy["policy"]], action, resource) == wanted


def test_every_arn_is_of_the_partition(register: Register) -> None:
    registered = register(lambda: SqsWorkQueue("images", work_queue_args(partition="aws-cn", region="cn-north-1")))

    written = json.dumps([inputs for _, _, inputs in registered.resources[1:]])
    assert written.count("arn:aws-cn:sqs:cn-north-1:123456789012:dev_red_images") >= 4
    assert "arn:aws:" not in written


def test_names_that_are_too_long_are_cut_and_stay_their_own(register: Register) -> None:
    def declare() -> None:
        for number in (1, 2):
            SqsWorkQueue(f"long-{number}", work_queue_args(queue=f"{'q' * 90}{number}"))

    names = [each["name"] for each in register(declare).of(QUEUE)]

    assert len(set(names)) == 4
    assert {len(name) for name in names} == {80}
    assert sum(name.endswith("-dead-letter") for name in names) == 2


def test_its_outputs_are_where_to_work_and_where_to_look(register: Register) -> None:
    found: list[str] = []

    def declare() -> None:
        queue = SqsWorkQueue("images", work_queue_args())
        pulumi.Output.all(queue.queue_url, queue.queue_name, queue.queue_arn, queue.dead_letter_url).apply(found.extend)

    register(declare)

    assert found == ["images-queue-id", "dev_red_images", ARN, "images-dead-letters-id"]


def test_its_children_are_its_own_and_named_after_it(register: Register) -> None:
    others, own = parentage(register, lambda: SqsWorkQueue("images", work_queue_args()))

    parts = ("dead-letters", "queue", "dead-letters-policy", "queue-policy", "redrive-allow-policy", "worker")
    assert sorted(others) == sorted(own) == sorted(f"images-{part}" for part in parts)


@pytest.mark.parametrize(
    "change,problem",
    [
        ({"queue": "dev.red.images"}, "queue is 'dev.red.images'; a name has letters, digits, - and _, and begins with a letter or digit"),
        ({"queue": "images.fifo"}, "queue is 'images.fifo'"),
        ({"queue": ""}, "queue is ''"),
        ({"account": "acme"}, "account is 'acme'; it must be an account's id, 12 digits"),
        ({"region": "cn-north-1"}, "partition is 'aws' with region cn-north-1"),
        ({"grace_seconds": 43171}, "grace_seconds is 43171; a lease can outlast 0 to 43170: give the workers' grace period"),
        ({"grace_seconds": -1}, "grace_seconds is -1"),
        ({"lease_seconds": 43201}, "lease_seconds is 43201; 1 to 43200 can be had: choose a value in between"),
        ({"lease_seconds": 0}, "lease_seconds is 0; 1 to 43200"),
        ({"lease_seconds": 149}, "lease_seconds is 149 with grace_seconds 120; a task would be received again"),
        ({"lease_seconds": 149}, "give at least 150"),
        ({"retention_days": 14}, "retention_days is 14; 1 to 13 can be had"),
        ({"max_attempts": 1}, "max_attempts is 1; 2 to 1000 can be had"),
        ({"max_attempts": 1001}, "max_attempts is 1001"),
        ({"kms_key": "alias/ai"}, "kms_key is 'alias/ai'; it must be a key's ARN such as arn:aws:kms:"),
        ({"tags": {"": "red"}}, "tags has the key ''"),
    ],
)
def test_what_would_lose_or_repeat_tasks_is_refused_before_anything_is_registered(
    change: dict[str, Any], problem: str, register: Register
) -> None:
    refused: list[str] = []

    def declare() -> None:
        with pytest.raises(ValueError, match="SqsWorkQueue images: ") as error:
            SqsWorkQueue("images", work_queue_args(**change))
        refused.append(str(error.value))

    registered = register(declare)

    assert problem in refused[0]
    assert registered.resources == []
