"""PubsubWorkQueue: a queue of tasks, and the dead letters of those that fail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pulumi
import pytest

from flexspot.components.storage.pubsub_work_queue import PubsubWorkQueue, PubsubWorkQueueArgs

if TYPE_CHECKING:
    from component_types import Outputs, Refusal, Register

TOPIC = "gcp:pubsub/topic:Topic"
SUBSCRIPTION = "gcp:pubsub/subscription:Subscription"
TOPIC_MEMBER = "gcp:pubsub/topicIAMMember:TopicIAMMember"
SUBSCRIPTION_MEMBER = "gcp:pubsub/subscriptionIAMMember:SubscriptionIAMMember"
IDENTITY = "gcp:projects/serviceIdentity:ServiceIdentity"

AGENT = "serviceAccount:service-1@gcp-sa-pubsub.iam.gserviceaccount.com"
WORKER = "team-red-dev@acme-ai.iam.gserviceaccount.com"


def args(**changes: Any) -> PubsubWorkQueueArgs:
    # pyrefly: ignore[bad-return] -- some arguments are invalid on purpose
    return {
        "queue": "red-images",
        "project": "acme-ai",
        "worker_member": f"serviceAccount:{WORKER}",
        "grace_seconds": 15,
        "labels": {"team": "red"},
    } | changes


def subscriptions(registered: Any) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in registered.of(SUBSCRIPTION)}


def test_tasks_wait_for_workers_are_retried_and_become_dead_letters(register: Register) -> None:
    registered = register(lambda: PubsubWorkQueue("images", args()))

    # A mock receives them in any order.
    assert sorted(registered.of(TOPIC), key=lambda topic: topic["name"]) == [
        {"name": "red-images", "project": "acme-ai", "labels": {"team": "red"}},
        {"name": "red-images-dead-letter", "project": "acme-ai", "labels": {"team": "red"}},
    ]
    assert subscriptions(registered)["red-images"] == {
        "name": "red-images",
        "project": "acme-ai",
        "topic": "images-topic-id",
        "ackDeadlineSeconds": 60,
        "enableExactlyOnceDelivery": True,
        "messageRetentionDuration": "604800s",
        "expirationPolicy": {"ttl": ""},
        "retryPolicy": {"minimumBackoff": "10s", "maximumBackoff": "600s"},
        "deadLetterPolicy": {"deadLetterTopic": "images-dead-letters-id", "maxDeliveryAttempts": 20},
        "labels": {"team": "red"},
    }
    dead_letters = subscriptions(registered)["red-images-dead-letter"]
    assert (dead_letters["topic"], dead_letters["expirationPolicy"]) == ("images-dead-letters-id", {"ttl": ""})


def test_the_service_agent_may_publish_dead_letters_and_the_worker_may_publish_and_pull(register: Register) -> None:
    registered = register(lambda: PubsubWorkQueue("images", args(worker_member=pulumi.Output.from_input(f"serviceAccount:{WORKER}"))))

    assert registered.of(IDENTITY) == [{"project": "acme-ai", "service": "pubsub.googleapis.com"}]
    worker = f"serviceAccount:{WORKER}"
    assert {(each["topic"], each["role"], each["member"]) for each in registered.of(TOPIC_MEMBER)} == {
        ("red-images-dead-letter", "roles/pubsub.publisher", AGENT),
        ("red-images", "roles/pubsub.publisher", worker),
    }
    assert {(each["subscription"], each["role"], each["member"]) for each in registered.of(SUBSCRIPTION_MEMBER)} == {
        ("red-images", "roles/pubsub.subscriber", AGENT),
        ("red-images", "roles/pubsub.subscriber", worker),
    }


def test_deadline_retention_attempts_and_key_can_be_set(register: Register) -> None:
    changes = {"ack_deadline_seconds": 600, "retention_days": 31, "max_delivery_attempts": 5, "kms_key": "key"}

    registered = register(lambda: PubsubWorkQueue("images", args(**changes)))

    found = subscriptions(registered)["red-images"]
    assert (found["ackDeadlineSeconds"], found["messageRetentionDuration"]) == (600, "2678400s")
    assert found["deadLetterPolicy"]["maxDeliveryAttempts"] == 5
    assert {topic["kmsKeyName"] for topic in registered.of(TOPIC)} == {"key"}


@pytest.mark.parametrize("grace,deadline", [(0, 60), (30, 60), (31, 61), (120, 150), (570, 600)])
def test_a_deadline_that_is_not_given_outlasts_the_grace_period(grace: int, deadline: int, register: Register) -> None:
    registered = register(lambda: PubsubWorkQueue("images", args(grace_seconds=grace)))

    assert subscriptions(registered)["red-images"]["ackDeadlineSeconds"] == deadline


def test_its_outputs_are_full_names(outputs: Outputs) -> None:
    assert outputs(lambda: PubsubWorkQueue("images", args())) == {
        "topic": "projects/acme-ai/topics/red-images",
        "subscription": "projects/acme-ai/subscriptions/red-images",
        "dead_letter_subscription": "projects/acme-ai/subscriptions/red-images-dead-letter",
    }


@pytest.mark.parametrize(
    "change,problem",
    [
        ({"queue": "9lives"}, "queue (is '9lives', 6 characters): must have 3 to 243 letters"),
        ({"queue": "google-tasks"}, "begin with a letter but not with goog; shorten or respell it"),
        ({"grace_seconds": 571}, "grace_seconds (is 571): must be 0 to 570, because the ack deadline must be longer; give the"),
        ({"ack_deadline_seconds": 601}, "ack_deadline_seconds (is 601): Pub/Sub accepts 10 to 600; choose a value in that range"),
        ({"ack_deadline_seconds": 9}, "ack_deadline_seconds (is 9): Pub/Sub accepts 10 to 600"),
        ({"ack_deadline_seconds": 44}, "ack_deadline_seconds (is 44): is too short for grace_seconds 15: a task would be delivered again"),
        ({"ack_deadline_seconds": 149, "grace_seconds": 120}, "give at least 150"),
        ({"retention_days": 32}, "retention_days (is 32): Pub/Sub accepts 1 to 31; choose a value in that range"),
        ({"max_delivery_attempts": 4}, "max_delivery_attempts (is 4): Pub/Sub accepts 5 to 100; choose a value in that range"),
        ({"labels": {"Team": "red"}}, "labels: the key 'Team' must"),
    ],
)
def test_queues_that_would_lose_or_repeat_tasks_are_refused_before_anything_is_registered(
    change: dict[str, Any], problem: str, refusal: Refusal
) -> None:
    assert problem in refusal(PubsubWorkQueue, "images", args(**change))
