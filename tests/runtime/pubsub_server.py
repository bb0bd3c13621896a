"""A Pub/Sub server over gRPC, as far as a worker uses one: leases, redelivery, counted attempts.

It is a separate program, as one process cannot load Google's client and Pulumi's SDK: both contain a google.rpc.Status. It prints a line of
JSON about PubsubQueue's calls to the server. It follows the reference of google.pubsub.v1: an acknowledgement of a delivery after its
deadline does not count, and a deadline of 0 gives the message back at once.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import grpc
from flexspot_runtime.pubsub_queue import PubsubQueue
from google.protobuf.empty_pb2 import Empty
from google.pubsub_v1.types import (
    AcknowledgeRequest,
    ModifyAckDeadlineRequest,
    PubsubMessage,
    PullRequest,
    PullResponse,
    ReceivedMessage,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

ACK_SECONDS = 10.0
LONGEST_PULL_SECONDS = 0.2


@dataclass
class _Message:
    body: bytes
    attempts: int = 0


@dataclass
class Subscription:
    """The server's only subscription."""

    name: str

    def __post_init__(self) -> None:
        self._waiting: deque[_Message] = deque()
        self._leased: dict[str, tuple[_Message, float]] = {}
        self._receipts = count(1)
        self._changed = threading.Condition()

    def publish(self, *bodies: bytes) -> None:
        with self._changed:
            self._waiting += [_Message(body) for body in bodies]

    def is_empty(self) -> bool:
        with self._changed:
            self._take_back()
            return not self._waiting and not self._leased

    def pull(self, request: PullRequest) -> PullResponse:
        with self._changed:
            self._take_back()
            if not self._waiting:
                self._changed.wait(LONGEST_PULL_SECONDS)
                self._take_back()
            received: list[ReceivedMessage] = []
            while self._waiting and len(received) < request.max_messages:
                message = self._waiting.popleft()
                message.attempts += 1
                ack_id = f"ack-{next(self._receipts)}"
                self._leased[ack_id] = (message, time.monotonic() + ACK_SECONDS)
                received.append(ReceivedMessage(ack_id=ack_id, message=PubsubMessage(data=message.body), delivery_attempt=message.attempts))
            return PullResponse(received_messages=received)

    def acknowledge(self, request: AcknowledgeRequest) -> Empty:
        with self._changed:
            self._take_back()
            for ack_id in request.ack_ids:
                self._leased.pop(ack_id, None)
        return Empty()

    def modify_ack_deadline(self, request: ModifyAckDeadlineRequest) -> Empty:
        with self._changed:
            self._take_back()
            for ack_id in request.ack_ids:
                if leased := self._leased.get(ack_id):
                    self._leased[ack_id] = (leased[0], time.monotonic() + request.ack_deadline_seconds)
            self._take_back()
            self._changed.notify_all()
        return Empty()

    def _take_back(self) -> None:
        now = time.monotonic()
        for ack_id in [ack_id for ack_id, (_, until) in self._leased.items() if until <= now]:
            self._waiting.append(self._leased.pop(ack_id)[0])


def _bytes_of_answer(answer: PullResponse) -> bytes:
    return PullResponse.serialize(answer)


@contextmanager
def serving(subscription: Subscription) -> Generator[str]:
    """Serve the subscription. Yield the address for PUBSUB_EMULATOR_HOST."""

    def handler(call: Callable[[Any], Any], request: Any, answer: Callable[[Any], bytes]) -> Any:
        def respond(asked: Any, context: Any) -> Any:
            if asked.subscription != subscription.name:
                context.abort(grpc.StatusCode.NOT_FOUND, f"{asked.subscription} is not there")
            return call(asked)

        # The stub declares `*args: Any, **kwargs: Any` for any callable.
        return grpc.unary_unary_rpc_method_handler(respond, request.deserialize, answer)  # pyrefly: ignore[bad-argument-type] -- see above

    server: Any = grpc.server(ThreadPoolExecutor(8))
    handlers = {
        "Pull": handler(subscription.pull, PullRequest, _bytes_of_answer),
        "Acknowledge": handler(subscription.acknowledge, AcknowledgeRequest, Empty.SerializeToString),
        "ModifyAckDeadline": handler(subscription.modify_ack_deadline, ModifyAckDeadlineRequest, Empty.SerializeToString),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("google.pubsub.v1.Subscriber", handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


NAME = "projects/ai/subscriptions/work"


def refusal(call: Any) -> str:
    try:
        call()
    except (OSError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def main() -> None:
    subscription = Subscription(NAME)
    with serving(subscription) as address:
        os.environ["PUBSUB_EMULATOR_HOST"] = address
        queue = PubsubQueue(NAME)
        answers: dict[str, Any] = {"nothing": len(queue.receive(1, 0.05))}
        subscription.publish(b"tile-7")
        [first] = queue.receive(10, 5)
        queue.extend(first)
        answers["while leased"] = len(queue.receive(10, 5))
        queue.give_back(first)
        [second] = queue.receive(10, 5)
        answers["deliveries"] = [[each.body.decode(), each.attempt] for each in (first, second)]
        queue.finish(second)
        answers["empty"] = subscription.is_empty()
        answers["absent"] = refusal(lambda: PubsubQueue("projects/ai/subscriptions/absent").receive(1, 5))
        answers["leases"] = [refusal(lambda seconds=seconds: PubsubQueue(NAME, lease_seconds=seconds)) for seconds in (0, 601)]
    print(json.dumps(answers))  # noqa: T201 -- the answer


if __name__ == "__main__":
    main()
