"""prod-gke with two pools that have GPUDirect, for tests."""

from __future__ import annotations

from typing import Any

from program_declarations import shipped

ZONE = "us-central1-b"


def gpudirect_pool(name: str, machine: str, **more: Any) -> dict[str, Any]:
    """Return a reserved pool of two nodes for training."""
    own = {"capacity_type": "reserved", "reservation": {"name": name}, "max_nodes": 2, "serves": ["training"], "zones": [ZONE]}
    return {"name": name, "machine": machine, "network": "gpudirect", **own, **more}


def gpudirect_settings(*pools: dict[str, Any]) -> dict[str, Any]:
    """Return settings with these pools, by default one of H200 and one of B200. Team nlp has all their GPUs."""
    settings = shipped("prod-gke")
    added = list(pools) or [gpudirect_pool("h200", "a3-ultragpu-8g"), gpudirect_pool("b200", "a4-highgpu-8g")]
    settings["pools"] = [*settings["pools"], *added]
    settings["zone_machines"] = "unchecked"
    for team in settings["teams"]:
        if team["name"] == "nlp":
            team["shares"] = {**team.get("shares", {}), **{pool["name"]: 16 for pool in added}}
    return settings
