"""The shipped development stack of EKS in Auto Mode, for tests of plan and program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

_STACK = Path(__file__).resolve().parents[1] / "stacks" / "Pulumi.dev-eks.yaml"


def auto_mode_settings() -> dict[str, Any]:
    """The settings of dev-eks in Auto Mode, which AWS gives an image, with services on reserved GPUs and on on-demand ones besides."""
    settings: dict[str, Any] = yaml.safe_load(_STACK.read_text(encoding="utf-8"))["config"]["flexspot:platform"]
    del settings["cluster"]["ami"]
    settings["cluster"]["mode"] = "auto"
    settings["pools"] += [
        {
            "name": "l40s-reserved",
            "machine": "g6e.xlarge",
            "capacity_type": "reserved",
            "max_nodes": 2,
            "reservation": {"tags": {"purpose": "serving"}, "owner": "444455556666"},
            "serves": ["inference"],
        },
        {
            "name": "l40s-on-demand",
            "machine": "g6e.xlarge",
            "capacity_type": "on-demand",
            "max_nodes": 1,
            "zones": ["us-east-1a"],
            "boot_disk_gib": 100,
            "quiet_hours": [{"schedule": "0 8 * * mon-fri", "hours": 10}],
            "serves": ["inference"],
        },
    ]
    settings["teams"][0]["unqueued"] = {"l40s-reserved": 2, "l40s-on-demand": 1}
    settings["budget"] = {"monthly_usd": 9000}
    return settings
