"""The shipped development stack of EKS in Auto Mode, for tests of plan and program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from plan_settings import pool

_STACK = Path(__file__).resolve().parents[1] / "stacks" / "Pulumi.dev-eks.yaml"


def auto_mode_settings() -> dict[str, Any]:
    """Return the settings of dev-eks in Auto Mode, with AWS's own image, and with additional services on reserved and on-demand GPUs."""
    settings: dict[str, Any] = yaml.safe_load(_STACK.read_text(encoding="utf-8"))["config"]["flexspot:platform"]
    del settings["cluster"]["ami"]
    settings["cluster"]["mode"] = "auto"
    reservation = {"tags": {"purpose": "serving"}, "owner": "444455556666"}
    more = {"zones": ["us-east-1a"], "boot_disk_gib": 100, "quiet_hours": [{"schedule": "0 8 * * mon-fri", "hours": 10}]}
    settings["pools"] += [
        pool("l40s-reserved", "g6e.xlarge", "reserved", 2, "inference", reservation=reservation),
        pool("l40s-on-demand", "g6e.xlarge", "on-demand", 1, "inference", **more),
    ]
    settings["teams"][0]["unqueued"] = {"l40s-reserved": 2, "l40s-on-demand": 1}
    settings["budget"] = {"monthly_usd": 9000}
    return settings
