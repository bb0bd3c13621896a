"""Fixtures of the stand-in clouds' tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cloud_world import CloudWorld
from credential_servers import google, write_service_account
from moto_server import moto_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.lab.control_plane import LabControlPlane
    from flexspot.lab.tools.build import Tools

PROJECTS = {"acme-ai-dev": "ACTIVE", "acme-ai-prod": "ACTIVE", "acme-ai-gone": "DELETE_REQUESTED", "acme-ai-empty": "ACTIVE"}
DISABLED = {"acme-ai-empty": {"containerfilesystem.googleapis.com", "pubsub.googleapis.com"}}


@pytest.fixture(scope="session")
def credential_addresses() -> Iterator[dict[str, str]]:
    """Yield the addresses of the servers that check credentials."""
    with google(PROJECTS, DISABLED) as google_address, moto_server() as aws_address:
        yield {"google": google_address, "aws": aws_address}


def make_world(folder: pytest.TempPathFactory, tools: Tools, addresses: dict[str, str]) -> CloudWorld:
    world = CloudWorld(folder.mktemp("world"), tools, addresses)
    write_service_account(world.folder / "service-account.json", addresses["google"])
    return world


@pytest.fixture
def bare_world(tools: Tools, tmp_path_factory: pytest.TempPathFactory, credential_addresses: dict[str, str]) -> CloudWorld:
    """Yield a machine whose cloud has no control plane: enough for refusals before anything is deployed."""
    return make_world(tmp_path_factory, tools, credential_addresses)


@pytest.fixture(scope="module")
def world(
    tools: Tools, stack_lab: LabControlPlane, tmp_path_factory: pytest.TempPathFactory, credential_addresses: dict[str, str]
) -> CloudWorld:
    """Yield a machine and a cloud for the tests of one module, whose clusters are the module's lab."""
    found = make_world(tmp_path_factory, tools, credential_addresses)
    found.serve_clusters_by(stack_lab, tools)
    return found
