"""A Pub/Sub work queue whose messages survive the machines of the workers."""

import re
from dataclasses import dataclass
from typing import NotRequired, TypedDict

import pulumi
from pulumi_gcp import projects, pubsub

from flexspot.capacity.settings.storage import LEASE_MARGIN_SECONDS
from flexspot.capacity.values.errors import SettingsProblem
from flexspot.components.cloud_names import check_gcp_labels
from flexspot.components.shared_args import publish, refuse

LEAST_ACK_SECONDS = 10
MOST_ACK_SECONDS = 600

ACK_MARGIN_SECONDS = LEASE_MARGIN_SECONDS
"""Time that a deadline leaves beyond the grace period: for the warning to arrive, the last write to end, and the acknowledgement to travel.
"""

_USUAL_ACK_SECONDS = 60
_USUAL_RETENTION_DAYS = 7
_USUAL_DELIVERY_ATTEMPTS = 20
_BACKOFF = pubsub.SubscriptionRetryPolicyArgs(minimum_backoff="10s", maximum_backoff="600s")
_DAY_SECONDS = 24 * 60 * 60

_PUBLISHER = "roles/pubsub.publisher"
_SUBSCRIBER = "roles/pubsub.subscriber"

_DEAD_LETTER = "-dead-letter"
_QUEUE_CHARACTERS = 255 - len(_DEAD_LETTER)
_QUEUE = re.compile(r"[A-Za-z][A-Za-z0-9_.~+%-]{2,254}")


class PubsubWorkQueueArgs(TypedDict):
    """Arguments of PubsubWorkQueue."""

    queue: str
    """Name of the topic and of the workers' subscription, 3 to 243 characters. Dead letters go to the same name with -dead-letter."""

    project: str
    """The project of the queue."""

    worker_member: pulumi.Input[str]
    """IAM member that publishes and pulls: a GcsTeamAccess's `member`."""

    grace_seconds: int
    """Seconds that a worker continues after an interruption warning: 15 on GKE Spot unless the pool raises it."""

    labels: dict[str, str]
    """Labels of topics and subscriptions, in Google Cloud's format."""

    ack_deadline_seconds: NotRequired[int | None]
    """Seconds that a worker leases a delivered message, 10 to 600, and at least 30 more than the grace period.

    Default: 60, or the grace period and 30 if that is more."""

    retention_days: NotRequired[int | None]
    """Days that an unacknowledged message is kept, 1 to 31. Default: 7."""

    max_delivery_attempts: NotRequired[int | None]
    """Deliveries after which a message goes to the dead-letter topic, 5 to 100. Default: 20, because an interruption counts as one."""

    kms_key: NotRequired[pulumi.Input[str] | None]
    """Key that encrypts the messages. Pub/Sub's service agent must first be allowed to use it. Default: Google's own key."""


class PubsubWorkQueue(pulumi.ComponentResource):
    """A topic and a pull subscription for tasks, and a dead-letter topic and subscription for tasks that fail repeatedly.

    A worker acknowledges a task once its result is stored. A task that is not acknowledged by the deadline goes to another worker. The
    deadline must be longer than the grace period: otherwise a second worker starts the task while the interrupted one still writes its
    result. A deadline is at most 600 s. **A task that may take longer must extend its lease** while it runs. The client libraries'
    streaming pull does so up to its own limit (max_lease_duration in Python; set it above the longest task). A plain pull calls
    modifyAckDeadline. On SIGTERM a worker should nack tasks that it will not finish, and may exit with 0: the queue, not the Job, keeps the
    task.

    Exactly-once delivery prevents redelivery of an acknowledged task (for workers in one region). But a task whose worker dies between the
    write and the acknowledgement is done twice, so write results under a name that the task determines.

    Raises ValueError for a name, deadline, retention or attempts that Pub/Sub rejects, a deadline that does not outlast the grace period,
    and labels that Google Cloud rejects. Limits are those of the Pub/Sub API v1. This component has not been deployed to a live project.
    """

    topic: pulumi.Output[str]
    """The topic for tasks, projects/PROJECT/topics/NAME, known once the subscription keeps published tasks."""

    subscription: pulumi.Output[str]
    """The subscription that workers pull from, projects/PROJECT/subscriptions/NAME."""

    dead_letter_subscription: pulumi.Output[str]
    """The subscription of dead letters, for people to inspect: projects/PROJECT/subscriptions/NAME-dead-letter."""

    def __init__(self, name: str, args: PubsubWorkQueueArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        resolved = _resolve(args)
        _check(name, args, resolved)
        super().__init__("flexspot:index:PubsubWorkQueue", name, {**args}, opts)
        child = pulumi.ResourceOptions(parent=self)
        queue, project, labels = args["queue"], args["project"], args["labels"]
        retention = f"{resolved.retention_days * _DAY_SECONDS}s"
        # By default a subscription without a pull for 31 days is deleted, with its tasks.
        never = pubsub.SubscriptionExpirationPolicyArgs(ttl="")
        kms_key = args.get("kms_key")
        dead_letter_name = f"{queue}{_DEAD_LETTER}"
        topic = pubsub.Topic(f"{name}-topic", name=queue, project=project, kms_key_name=kms_key, labels=labels, opts=child)
        dead_letters = pubsub.Topic(
            f"{name}-dead-letters", name=dead_letter_name, project=project, kms_key_name=kms_key, labels=labels, opts=child
        )
        # Created first: messages to a topic without a subscription are lost.
        kept = pubsub.Subscription(
            f"{name}-dead-letter-subscription",
            name=dead_letter_name,
            project=project,
            topic=dead_letters.id,
            ack_deadline_seconds=_USUAL_ACK_SECONDS,
            message_retention_duration=retention,
            expiration_policy=never,
            labels=labels,
            opts=child,
        )
        agent = projects.ServiceIdentity(f"{name}-agent", project=project, service="pubsub.googleapis.com", opts=child)
        dead_letter_publisher = pubsub.TopicIAMMember(
            f"{name}-agent-publisher", project=project, topic=dead_letters.name, role=_PUBLISHER, member=agent.member, opts=child
        )
        subscription = pubsub.Subscription(
            f"{name}-subscription",
            name=queue,
            project=project,
            topic=topic.id,
            ack_deadline_seconds=resolved.ack_deadline_seconds,
            enable_exactly_once_delivery=True,
            message_retention_duration=retention,
            expiration_policy=never,
            retry_policy=_BACKOFF,
            dead_letter_policy=pubsub.SubscriptionDeadLetterPolicyArgs(
                dead_letter_topic=dead_letters.id,
                max_delivery_attempts=resolved.max_delivery_attempts,
            ),
            labels=labels,
            opts=pulumi.ResourceOptions(parent=self, depends_on=[kept, dead_letter_publisher]),
        )
        worker = args["worker_member"]
        for part, member in (("agent", agent.member), ("worker", worker)):
            pubsub.SubscriptionIAMMember(
                f"{name}-{part}-subscriber", project=project, subscription=subscription.name, role=_SUBSCRIBER, member=member, opts=child
            )
        pubsub.TopicIAMMember(f"{name}-worker-publisher", project=project, topic=topic.name, role=_PUBLISHER, member=worker, opts=child)
        self.subscription = pulumi.Output.concat("projects/", project, "/subscriptions/", subscription.name)
        self.topic = pulumi.Output.all(topic.name, subscription.name).apply(lambda names: f"projects/{project}/topics/{names[0]}")
        self.dead_letter_subscription = pulumi.Output.concat("projects/", project, "/subscriptions/", kept.name)
        publish(self)


@dataclass(frozen=True)
class _ResolvedQueue:
    ack_deadline_seconds: int
    retention_days: int
    max_delivery_attempts: int


def _resolve(args: PubsubWorkQueueArgs) -> _ResolvedQueue:
    deadline = max(_USUAL_ACK_SECONDS, args["grace_seconds"] + ACK_MARGIN_SECONDS)
    return _ResolvedQueue(
        ack_deadline_seconds=_or(args.get("ack_deadline_seconds"), deadline),
        retention_days=_or(args.get("retention_days"), _USUAL_RETENTION_DAYS),
        max_delivery_attempts=_or(args.get("max_delivery_attempts"), _USUAL_DELIVERY_ATTEMPTS),
    )


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def _check(name: str, args: PubsubWorkQueueArgs, resolved: _ResolvedQueue) -> None:
    owner = f"PubsubWorkQueue {name}"
    queue, grace = args["queue"], args["grace_seconds"]
    if not _QUEUE.fullmatch(queue) or len(queue) > _QUEUE_CHARACTERS or queue.lower().startswith("goog"):
        form = f"must have 3 to {_QUEUE_CHARACTERS} letters, digits and -_.~+%, and begin with a letter but not with goog"
        refuse(owner, SettingsProblem("queue", f"{queue!r}, {len(queue)} characters", form, "shorten or respell it"))
    most_grace = MOST_ACK_SECONDS - ACK_MARGIN_SECONDS
    if not 0 <= grace <= most_grace:
        bounds = f"must be 0 to {most_grace}, because the ack deadline must be longer"
        refuse(owner, SettingsProblem("grace_seconds", str(grace), bounds, "give the pool's grace period"))
    ranges = {
        "ack_deadline_seconds": (resolved.ack_deadline_seconds, LEAST_ACK_SECONDS, MOST_ACK_SECONDS),
        "retention_days": (resolved.retention_days, 1, 31),
        "max_delivery_attempts": (resolved.max_delivery_attempts, 5, 100),
    }
    for argument, (value, least, most) in ranges.items():
        if not least <= value <= most:
            refuse(owner, SettingsProblem(argument, str(value), f"Pub/Sub accepts {least} to {most}", "choose a value in that range"))
    if (deadline := resolved.ack_deadline_seconds) < (least := grace + ACK_MARGIN_SECONDS):
        problem = f"is too short for grace_seconds {grace}: a task would be delivered again while the interrupted worker still writes"
        refuse(owner, SettingsProblem("ack_deadline_seconds", str(deadline), problem, f"give at least {least}"))
    check_gcp_labels(owner, args["labels"])
