"""What PubsubQueue does on a server, as a line of JSON; a program of its own for the reason that pubsub_server gives."""

from __future__ import annotations

import json
import os
from typing import Any

from flexspot_runtime.pubsub_queue import PubsubQueue
from pubsub_server import Subscription, serving

NAME = "projects/ai/subscriptions/work"


def refusal(call: Any) -> str:
    try:
        call()
    except (OSError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def main() -> None:
    subscription = Subscription(NAME, most_attempts=5)
    with serving(subscription) as address:
        os.environ["PUBSUB_EMULATOR_HOST"] = address
        queue = PubsubQueue(NAME)
        told: dict[str, Any] = {"nothing": len(queue.receive(1, 0.05))}
        subscription.publish(b"tile-7")
        [first] = queue.receive(10, 5)
        queue.extend(first)
        told["while leased"] = len(queue.receive(10, 5))
        queue.give_back(first)
        [second] = queue.receive(10, 5)
        told["deliveries"] = [[each.body.decode(), each.attempt] for each in (first, second)]
        queue.finish(second)
        told["empty"] = subscription.is_empty()
        told["absent"] = refusal(lambda: PubsubQueue("projects/ai/subscriptions/absent").receive(1, 5))
        told["leases"] = [refusal(lambda seconds=seconds: PubsubQueue(NAME, lease_seconds=seconds)) for seconds in (0, 601)]
    print(json.dumps(told))  # noqa: T201 -- the answer


if __name__ == "__main__":
    main()
