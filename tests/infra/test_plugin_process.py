"""The components' plugin process, started and called as by an engine but without one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import grpc
import pulumi
import pytest
from component_calls import floats
from gke_pool_args import pool_args
from program_declarations import Preview, under_mocks
from pulumi.output import UNKNOWN
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from flexspot.components.hosting.plugin import Plugin

CHECKOUT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow


def test_the_plugin_process_prints_its_port_and_serves_the_schema() -> None:
    command = [sys.executable, "-u", CHECKOUT / "infra" / "plugins" / "eks", "127.0.0.1:1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        with grpc.insecure_channel(f"127.0.0.1:{int(process.stdout.readline())}") as channel:
            answer: Any = provider_pb2_grpc.ResourceProviderStub(channel).GetSchema(provider_pb2.GetSchemaRequest())
        process.terminate()

    assert json.loads(answer.schema) == json.loads(Plugin("eks").schema or "")


def test_outputs_and_secrets_as_inputs_reach_the_components_children() -> None:
    inputs = {re.sub(r"_(.)", lambda found: found[1].upper(), name): floats(value) for name, value in pool_args().items()}

    def program() -> None:
        unknown = pulumi.Output.from_input(UNKNOWN)
        given = inputs | {"cluster": pulumi.Output.secret("a-secret-name"), "serviceAccount": unknown}
        Plugin("gke").construct("l4", "flexspot-gke:index:GkeGpuNodePool", given, pulumi.ResourceOptions())

    [pool] = under_mocks("test", program, Preview()).inputs_of("gcp:container/nodePool:NodePool")
    assert pool["cluster"] == {"$secret": True}
    assert pool["nodeConfig"]["serviceAccount"] == {"$unknown": True}
