"""The shipped development stack of GKE with its nodes left to Autopilot, for tests of plan and program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

_STACK = Path(__file__).resolve().parents[1] / "stacks" / "Pulumi.dev-gke.yaml"

# Of node pools alone, and refused on Autopilot, as the watch of stock-outs is.
_OF_NODE_POOLS = ("shutdown_grace_seconds",)


def autopilot_settings() -> dict[str, Any]:
    """The settings of dev-gke on Autopilot.

    Besides its own pools there is one of each other capacity type that Autopilot has: flex-start for training, and services on reserved and
    on-demand GPUs, which go from one to the other at a stock-out.
    """
    settings: dict[str, Any] = yaml.safe_load(_STACK.read_text(encoding="utf-8"))["config"]["flexspot:platform"]
    del settings["queueing"]["stock_outs"]
    settings["cluster"] = {key: value for key, value in settings["cluster"].items() if key != "system_pool"} | {"mode": "autopilot"}
    settings["pools"] = [{key: value for key, value in pool.items() if key not in _OF_NODE_POOLS} for pool in settings["pools"]] + [
        {"name": "a100-flex", "machine": "a2-highgpu-1g", "capacity_type": "flex-start", "max_nodes": 2, "serves": ["tuning"]},
        {
            "name": "l4-reserved",
            "machine": "g2-standard-24",
            "capacity_type": "reserved",
            "max_nodes": 2,
            "reservation": {"name": "acme-l4", "project": "acme-shared"},
            "serves": ["inference"],
        },
        {
            "name": "l4-on-demand",
            "machine": "g2-standard-24",
            "capacity_type": "on-demand",
            "max_nodes": 1,
            "zones": ["us-central1-a", "us-central1-c"],
            "boot_disk_gib": 100,
            "serves": ["inference"],
        },
    ]
    settings["classes"] |= {
        "tuning": {
            "description": "Fine-tuning jobs.",
            "priority_class": "gpu-tuning",
            "priority": 50_000,
            "preempts": False,
            "queued": True,
            "fallback": "quota",
            "capacity": ["flex-start"],
            "disruption": {"remove": "empty", "idle_seconds": 300},
            "run_limit_hours": 72,
            "grace_seconds": 60,
            "checkpoint": True,
            "disruption_budget": False,
        }
    }
    settings["teams"][0]["shares"] |= {"a100-flex": 1}
    settings["teams"][0]["unqueued"] = {"l4-reserved": 2, "l4-on-demand": 2}
    settings["budget"] = {"monthly_usd": 8000}
    return settings
