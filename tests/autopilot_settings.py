"""The shipped development stack of GKE with its nodes left to Autopilot, for tests of plan and program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from plan_settings import own_class, pool

_STACK = Path(__file__).resolve().parents[1] / "stacks" / "Pulumi.dev-gke.yaml"

# Fields of node pools, which settings of Autopilot reject.
_OF_NODE_POOLS = ("shutdown_grace_seconds",)


def autopilot_settings() -> dict[str, Any]:
    """Return the settings of dev-gke on Autopilot, with a pool of every capacity type that Autopilot offers.

    The added pools are flex-start for training, and reserved and on-demand GPUs for services, which move from one to the other at a
    stock-out.
    """
    settings: dict[str, Any] = yaml.safe_load(_STACK.read_text(encoding="utf-8"))["config"]["flexspot:platform"]
    settings["cluster"] = {key: value for key, value in settings["cluster"].items() if key != "system_pool"} | {"mode": "autopilot"}
    own = [{key: value for key, value in each.items() if key not in _OF_NODE_POOLS} for each in settings["pools"]]
    reservation, zones = {"name": "acme-l4", "project": "acme-shared"}, ["us-central1-a", "us-central1-c"]
    settings["pools"] = [
        *own,
        pool("a100-flex", "a2-highgpu-1g", "flex-start", 2, "tuning"),
        pool("l4-reserved", "g2-standard-24", "reserved", 2, "inference", reservation=reservation),
        pool("l4-on-demand", "g2-standard-24", "on-demand", 1, "inference", zones=zones, boot_disk_gib=100),
    ]
    tuning = {"description": "Fine-tuning jobs.", "priority_class": "gpu-tuning", "priority": 50_000, "capacity": ["flex-start"]}
    disruption = {"remove": "empty", "idle_seconds": 300}
    settings["classes"]["tuning"] = own_class("tuning", **tuning, disruption=disruption, run_limit_hours=72, checkpoint=True)
    settings["teams"][0]["shares"] |= {"a100-flex": 1}
    settings["teams"][0]["unqueued"] = {"l4-reserved": 2, "l4-on-demand": 2}
    settings["budget"] = {"monthly_usd": 8000}
    return settings
