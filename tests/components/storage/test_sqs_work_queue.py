"""SqsWorkQueue: a queue of tasks, the dead letters of those that fail, and a worker's permissions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pulumi
import pytest
from iam_judge import permissions
from sqs_queue_args import KEY, work_queue_args

from flexspot.components.storage.sqs_work_queue import SqsWorkQueue

if TYPE_CHECKING:
    from component_types import Outputs, Refusal, Register

QUEUE = "aws:sqs/queue:Queue"
QUEUE_POLICY = "aws:sqs/queuePolicy:QueuePolicy"
REDRIVE_ALLOW = "aws:sqs/redriveAllowPolicy:RedriveAllowPolicy"
ROLE_POLICY = "aws:iam/rolePolicy:RolePolicy"

ARN = "arn:aws:sqs:us-east-1:123456789012:dev_red_images"
DEAD_LETTERS = f"{ARN}-dead-letter"


def queue_of(registered: Any, name: str = "dev_red_images") -> dict[str, Any]:
    return {each["name"]: each for each in registered.of(QUEUE)}[name]


def test_tasks_wait_for_workers_are_retried_and_become_dead_letters(register: Register) -> None:
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


def test_lease_retention_attempts_and_key_can_be_set(register: Register) -> None:
    changes = {"lease_seconds": 600, "retention_days": 13, "max_attempts": 5, "kms_key": pulumi.Output.from_input(KEY)}

    registered = register(lambda: SqsWorkQueue("images", work_queue_args(**changes)))

    queue = queue_of(registered)
    assert (queue["visibilityTimeoutSeconds"], queue["messageRetentionSeconds"]) == (600, 13 * 86400)
    assert json.loads(queue["redrivePolicy"])["maxReceiveCount"] == 5
    assert [(each["kmsMasterKeyId"], each.get("sqsManagedSseEnabled")) for each in registered.of(QUEUE)] == [(KEY, None), (KEY, None)]
    [policy] = registered.of(ROLE_POLICY)
    # The buckets may have the same key.
    through = {"StringEquals": {"kms:ViaService": ["sqs.us-east-1.amazonaws.com", "sqs.us-east-1.amazonaws.com.cn"]}}
    assert permissions(policy["policy"])[-1] == ("Allow", "kms:Decrypt", KEY, through)


@pytest.mark.parametrize("grace,lease", [(0, 300), (120, 300), (270, 300), (271, 301), (43170, 43200)])
def test_a_lease_that_is_not_given_outlasts_the_grace_period(grace: int, lease: int, register: Register) -> None:
    registered = register(lambda: SqsWorkQueue("images", work_queue_args(grace_seconds=grace)))

    assert queue_of(registered)["visibilityTimeoutSeconds"] == lease


def test_both_queues_reject_plain_http_and_allow_nothing(register: Register) -> None:
    policies = {each["queueUrl"]: each["policy"] for each in register(lambda: SqsWorkQueue("images", work_queue_args())).of(QUEUE_POLICY)}

    plain = {"Bool": {"aws:SecureTransport": "false"}}
    assert {url: permissions(policy) for url, policy in policies.items()} == {
        url: [("Deny", "sqs:*", arn, plain)] for url, arn in (("images-queue-id", ARN), ("images-dead-letters-id", DEAD_LETTERS))
    }


def test_a_worker_may_receive_extend_return_and_delete_tasks_and_nothing_else(register: Register) -> None:
    role = pulumi.Output.from_input("acme-dev-team-red")

    [policy] = register(lambda: SqsWorkQueue("images", work_queue_args(worker_role_name=role))).of(ROLE_POLICY)

    assert (policy["role"], policy["name"]) == ("acme-dev-team-red", "queue-dev_red_images")
    actions = ("ReceiveMessage", "ChangeMessageVisibility", "DeleteMessage", "GetQueueAttributes", "GetQueueUrl")
    assert permissions(policy["policy"]) == [("Allow", f"sqs:{action}", ARN, {}) for action in actions]


def test_every_arn_is_of_the_partition(register: Register) -> None:
    registered = register(lambda: SqsWorkQueue("images", work_queue_args(partition="aws-cn", region="cn-north-1")))

    written = json.dumps([inputs for _, _, inputs in registered.resources[1:]])
    assert written.count("arn:aws-cn:sqs:cn-north-1:123456789012:dev_red_images") >= 4
    assert "arn:aws:" not in written


def test_names_that_are_too_long_are_cut_and_stay_different(register: Register) -> None:
    def declare() -> None:
        for number in (1, 2):
            SqsWorkQueue(f"long-{number}", work_queue_args(queue=f"{'q' * 90}{number}"))

    names = [each["name"] for each in register(declare).of(QUEUE)]

    assert len(set(names)) == 4
    assert {len(name) for name in names} == {80}
    assert sum(name.endswith("-dead-letter") for name in names) == 2


def test_its_outputs_are_the_queues_for_workers_and_for_dead_letters(outputs: Outputs) -> None:
    assert outputs(lambda: SqsWorkQueue("images", work_queue_args())) == {
        "queue_url": "images-queue-id",
        "queue_name": "dev_red_images",
        "queue_arn": ARN,
        "dead_letter_url": "images-dead-letters-id",
    }


@pytest.mark.parametrize(
    "change,problem",
    [
        (
            {"queue": "dev.red.images"},
            "queue (is 'dev.red.images'): must be letters, digits, - and _, beginning with a letter or digit; respell it",
        ),
        ({"queue": ""}, "queue (is ''): must be letters, digits, - and _, beginning with a letter or digit; respell it"),
        ({"region": "cn-north-1"}, "partition (is 'aws'): region cn-north-1"),
        (
            {"grace_seconds": 43171},
            "grace_seconds (is 43171): must be 0 to 43170, because the lease must be longer; give the workers' grace period",
        ),
        ({"lease_seconds": 43201}, "lease_seconds (is 43201): must be 1 to 43200; choose a value in that range"),
        (
            {"lease_seconds": 149},
            "lease_seconds (is 149): is too short for grace_seconds 120: a task would be received again while the interrupted",
        ),
        ({"lease_seconds": 149}, "give at least 150"),
        ({"retention_days": 14}, "retention_days (is 14): must be 1 to 13; choose a value in that range"),
        ({"max_attempts": 1}, "max_attempts (is 1): must be 2 to 1000; choose a value in that range"),
        ({"kms_key": "alias/ai"}, "kms_key (is 'alias/ai'): must be a key's ARN such as arn:aws:kms:"),
        ({"tags": {"": "red"}}, "tags: the key '' must"),
    ],
)
def test_queues_that_would_lose_or_repeat_tasks_are_refused_before_anything_is_registered(
    change: dict[str, Any], problem: str, refusal: Refusal
) -> None:
    assert problem in refusal(SqsWorkQueue, "images", work_queue_args(**change))
