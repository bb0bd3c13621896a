"""A provider plugin as the engine starts it: serves on a free port, says it on standard output, and ends with the engine."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cloud_folder import HOME_VARIABLE, CloudFolder
from cloud_provider import CloudProvider
from programs_cluster import ProgramsCluster

from lab.providers.serving import serve

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from pulumi.runtime.proto import provider_pb2_grpc


def serve_until(name: str, version: str, wait_for_end: Callable[[], None]) -> NoReturn:
    """Serves the provider `name` until `wait_for_end` returns, and ends the process."""
    cloud = CloudFolder(Path(os.environ[HOME_VARIABLE]))
    with serve(_provider(name, version, cloud)) as port:
        sys.stdout.write(f"{port}\n")
        sys.stdout.flush()
        wait_for_end()
        # A call that still waits for the control plane would keep the process.
        os._exit(0)


def _provider(name: str, version: str, cloud: CloudFolder) -> provider_pb2_grpc.ResourceProviderServicer:
    return ProgramsCluster(cloud) if name == "kubernetes" else CloudProvider(name, version, cloud)
