"""A Pub/Sub subscription for workers. Extra: `pubsub`."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, cast

from google.api_core.exceptions import DeadlineExceeded, GoogleAPIError
from google.cloud.pubsub_v1 import SubscriberClient
from google.pubsub_v1.types import AcknowledgeRequest, ModifyAckDeadlineRequest, PullRequest, PullResponse

from flexspot_runtime.worker import Delivery

if TYPE_CHECKING:
    from collections.abc import Generator

_MOST_LEASE_SECONDS = 600


class _Client(Protocol):
    """The methods of SubscriberClient used here. Its own types are incomplete."""

    def pull(self, request: PullRequest, *, retry: None, timeout: float) -> PullResponse: ...
    def acknowledge(self, request: AcknowledgeRequest) -> None: ...
    def modify_ack_deadline(self, request: ModifyAckDeadlineRequest) -> None: ...


class PubsubQueue:
    """A pull subscription, `projects/PROJECT/subscriptions/NAME`. The worker's account needs roles/pubsub.subscriber on it.

    Messages are pulled one by one or in small batches, not streamed. A worker then has no more than it works on, and returns that at a
    warning. `lease_seconds` is set at every delivery, whatever the subscription's own deadline is. Pub/Sub allows at most 600; longer tasks
    depend on extensions.

    Raises ValueError for `lease_seconds` outside 1 to 600.
    """

    def __init__(self, subscription: str, *, lease_seconds: float = 60.0, client: SubscriberClient | None = None) -> None:
        if not 1 <= lease_seconds <= _MOST_LEASE_SECONDS:
            raise ValueError(f"lease_seconds is {lease_seconds}; Pub/Sub takes 1 to {_MOST_LEASE_SECONDS}")
        self.subscription = subscription
        self.lease_seconds = lease_seconds
        self._client = cast("_Client", client or SubscriberClient())

    def receive(self, most: int, wait_seconds: float) -> list[Delivery]:
        """See WorkQueue."""
        with _as_oserror():
            try:
                request = PullRequest(subscription=self.subscription, max_messages=most)
                answer = self._client.pull(request, timeout=wait_seconds, retry=None)
            except DeadlineExceeded:
                return []
        deliveries = [
            Delivery(body=received.message.data, receipt=received.ack_id, attempt=received.delivery_attempt)
            for received in answer.received_messages
        ]
        if deliveries:
            self._change(deliveries, self.lease_seconds)
        return deliveries

    def extend(self, delivery: Delivery) -> None:
        """See WorkQueue."""
        self._change([delivery], self.lease_seconds)

    def finish(self, delivery: Delivery) -> None:
        """See WorkQueue."""
        with _as_oserror():
            self._client.acknowledge(AcknowledgeRequest(subscription=self.subscription, ack_ids=[delivery.receipt]))

    def give_back(self, delivery: Delivery, after_seconds: float = 0.0) -> None:
        """See WorkQueue. With 0, the subscription's retry policy decides when the message is delivered again."""
        self._change([delivery], min(after_seconds, _MOST_LEASE_SECONDS))

    def _change(self, deliveries: list[Delivery], seconds: float) -> None:
        with _as_oserror():
            self._client.modify_ack_deadline(
                ModifyAckDeadlineRequest(
                    subscription=self.subscription,
                    ack_ids=[delivery.receipt for delivery in deliveries],
                    ack_deadline_seconds=round(seconds),
                )
            )


@contextmanager
def _as_oserror() -> Generator[None]:
    try:
        yield
    except GoogleAPIError as error:
        raise OSError(f"Pub/Sub: {error}") from error
