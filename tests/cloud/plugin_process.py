"""A provider plugin as the engine starts it: serves on a free port, says it on standard output, and ends with the engine."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from cloud_folder import HOME_VARIABLE, CloudFolder

from lab.providers.serving import serve

if TYPE_CHECKING:
    from pulumi.runtime.proto import provider_pb2_grpc


def main(name: str, version: str) -> None:
    """Serves the provider `name` until the process that started it is gone."""
    engine = os.getppid()
    cloud = CloudFolder(Path(os.environ[HOME_VARIABLE]))
    with serve(_provider(name, version, cloud)) as port:
        sys.stdout.write(f"{port}\n")
        sys.stdout.flush()
        while os.getppid() == engine:
            time.sleep(0.2)
    # A call that still waits for the control plane would keep the process.
    os._exit(0)


def _provider(name: str, version: str, cloud: CloudFolder) -> provider_pb2_grpc.ResourceProviderServicer:
    # Each run of the engine starts each plugin: none loads what another one needs.
    if name == "kubernetes":
        from programs_cluster import ProgramsCluster  # noqa: PLC0415

        return ProgramsCluster(cloud)
    from cloud_provider import CloudProvider  # noqa: PLC0415

    return CloudProvider(name, version, cloud)
