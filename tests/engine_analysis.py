"""`pulumi policy analyze` over hand-written states with the executable pack: the real engine, without a program. Not a test."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

CHECKOUT = Path(__file__).resolve().parents[1]
PULUMI = CHECKOUT / ".tools" / "bin" / "pulumi"
PACK = CHECKOUT / "policies" / "pack"


def written_state(folder: Path, resources: Iterable[tuple[str, str, dict[str, Any]]]) -> Path:
    """Write a state with complete inputs and empty outputs, as in the first preview of a stack. Return its path."""
    listed = [
        {"urn": urn, "type": type_token, "custom": True, "id": "", "inputs": inputs, "outputs": {}} for urn, type_token, inputs in resources
    ]
    state = folder / "state.json"
    manifest = {"time": "2026-01-01T00:00:00Z", "magic": "", "version": ""}
    state.write_text(json.dumps({"version": 3, "deployment": {"manifest": manifest, "resources": listed}}))
    return state


def analyzed(folder: Path, state: Path, configuration: dict[str, Any] | None = None) -> tuple[int, list[dict[str, Any]], str]:
    """Return the exit code, policy events, and everything that was printed."""
    assert PULUMI.exists(), f"{PULUMI} is not built: run `make tools`"
    command = [PULUMI, "policy", "analyze", "--file", state, "--policy-pack", PACK, "--json"]
    if configuration is not None:
        written = folder / "configuration.json"
        written.write_text(json.dumps(configuration))
        command += ["--policy-pack-config", written]
    environment = {
        **os.environ,
        "PULUMI_HOME": str(folder / "home"),
        "PULUMI_BACKEND_URL": folder.as_uri(),
        "PULUMI_CONFIG_PASSPHRASE": "",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }
    ended = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    lines = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
    return ended.returncode, [line["policyEvent"] for line in lines if "policyEvent" in line], ended.stdout + ended.stderr
