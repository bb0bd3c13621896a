"""The executable pack under the real engine: `pulumi policy analyze` on hand-written states."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rule_fixtures import Case, cases

from capacity.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

pytestmark = pytest.mark.engine

CHECKOUT = Path(__file__).resolve().parents[2]
PULUMI = CHECKOUT / ".tools" / "bin" / "pulumi"
PACK = CHECKOUT / "policies" / "pack"


def written_state(folder: Path, resources: Iterable[tuple[str, str, dict[str, Any]]]) -> Path:
    """A state as the first preview of a stack leaves it: whole inputs, empty outputs."""
    listed = [
        {"urn": urn, "type": type_token, "custom": True, "id": "", "inputs": inputs, "outputs": {}} for urn, type_token, inputs in resources
    ]
    state = folder / "state.json"
    manifest = {"time": "2026-01-01T00:00:00Z", "magic": "", "version": ""}
    state.write_text(json.dumps({"version": 3, "deployment": {"manifest": manifest, "resources": listed}}))
    return state


def analyzed(folder: Path, state: Path, configuration: dict[str, Any] | None = None) -> tuple[int, list[dict[str, Any]], str]:
    """Exit code, policy events, and everything that was printed."""
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


def test_the_engine_gives_every_fixture_the_same_verdict_on_a_state_with_empty_outputs(tmp_path: Path) -> None:
    state = written_state(tmp_path, ((case.urn, case.type_token, case.inputs) for case in cases()))

    code, events, printed = analyzed(tmp_path, state)

    told = {(event["resourceUrn"], event["message"].partition(":")[0]): event["enforcementLevel"] for event in events}
    expected = {(case.urn, case.rule): {Verdict.FAIL: "mandatory", Verdict.UNKNOWN: "advisory"}.get(case.verdict) for case in cases()}
    assert code == 1, printed
    assert {key: level for key, level in expected.items() if told.get(key) != level} == {}, printed


def test_a_state_that_keeps_the_rules_passes(tmp_path: Path) -> None:
    def wanted(case: Case) -> bool:
        # What passes one rule may be silent about another; a pool with both taint and limit keeps them all.
        return case.rule == "gpu-container-without-limit" and case.verdict in {Verdict.PASS, Verdict.NOT_APPLICABLE}

    state = written_state(tmp_path, ((case.urn, case.type_token, case.inputs) for case in cases() if wanted(case)))

    code, events, printed = analyzed(tmp_path, state)

    assert (code, events) == (0, []), printed


def test_levels_and_parameters_come_from_the_pack_configuration(tmp_path: Path) -> None:
    pool = {"nodeConfig": {"machineType": "g2-standard-8"}, "autoscaling": {"maxNodeCount": 8}}
    token = "gcp:container/nodePool:NodePool"  # noqa: S105 -- a type token
    state = written_state(tmp_path, [(f"urn:pulumi:dev::flexspot::{token}::l4", token, pool)])
    configuration = {"flexspot": {"gpu-pool-without-taint": "advisory", "gpu-pool-without-limit": {"most": 4, "level": "mandatory"}}}

    code, events, printed = analyzed(tmp_path, state, configuration)

    assert code == 1, printed
    assert {(event["message"].partition(":")[0], event["enforcementLevel"]) for event in events} == {
        ("gpu-pool-without-taint", "advisory"),
        ("gpu-pool-without-limit", "mandatory"),
    }


def test_the_engine_refuses_a_setting_of_the_wrong_type_before_it_judges_anything(tmp_path: Path) -> None:
    state = written_state(tmp_path, ((case.urn, case.type_token, case.inputs) for case in cases()[:1]))

    code, events, printed = analyzed(tmp_path, state, {"flexspot": {"gpu-pool-without-taint": "loud"}})

    assert code != 0
    assert events == []
    assert 'must be one of the following: "mandatory", "advisory", "disabled"' in printed


def test_no_secret_of_a_state_is_printed(tmp_path: Path) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "train"},
        "spec": {
            "nodeSelector": {"nvidia.com/gpu.present": "true"},
            "containers": [{"name": "train", "env": [{"name": "TOKEN", "value": "hunter2"}], "args": ["--password=hunter2"]}],
        },
    }
    token = "kubernetes:core/v1:Pod"  # noqa: S105 -- a type token
    state = written_state(tmp_path, [(f"urn:pulumi:dev::flexspot::{token}::train", token, pod)])

    code, events, printed = analyzed(tmp_path, state)

    assert (code, len(events)) == (1, 1), printed
    assert "hunter2" not in printed
