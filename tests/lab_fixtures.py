"""A running control plane for tests, cleaned after each; registered by the tests' conftest.py."""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from flexspot.lab.cluster import Cluster
from flexspot.lab.control_plane import LabControlPlane
from flexspot.lab.exercise.play import clean_up
from flexspot.lab.home import LabHome
from flexspot.lab.progress import Silence
from flexspot.lab.tools.build import Tools, ensure_tools

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from flexspot.lab.cluster import KubeObject

CHECKOUT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def tools() -> Tools:
    """Return the built tools. The first run on a machine builds them."""
    return ensure_tools(CHECKOUT / ".tools", Silence())


@contextmanager
def running_lab(tools: Tools, home: LabHome) -> Generator[LabControlPlane]:
    """Yield a running lab, and delete it at the end of the context."""
    control_plane = LabControlPlane(home)
    control_plane.start(tools, Silence())
    try:
        yield control_plane
    finally:
        control_plane.stop(Silence(), delete=True)


@pytest.fixture(scope="session")
def lab(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabControlPlane]:
    """Yield a running lab that the tests of a worker share, and delete it at the end.

    A test that deploys a stack to it must destroy the stack, whose objects are cluster-wide. Its folder is that of a project's lab, for
    checkout_with_lab.
    """
    with running_lab(tools, LabHome(tmp_path_factory.mktemp("checkout") / ".lab", "default")) as control_plane:
        yield control_plane


@pytest.fixture(scope="module")
def stack_lab(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabControlPlane]:
    """Yield a running lab for one test module, whose objects are cluster-wide and stay until its end."""
    with running_lab(tools, LabHome(tmp_path_factory.mktemp("labs"), "stack")) as control_plane:
        yield control_plane


@pytest.fixture
def cluster(lab: LabControlPlane) -> Cluster:
    """Return the shared lab's API server."""
    return Cluster(lab.home.kubeconfig)


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """Yield a separate namespace that is ready for pods, and delete it afterwards."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    def ready(accounts: list[KubeObject]) -> bool:
        return bool(accounts)

    # Pods are rejected until the controller manager has created the namespace's default service account.
    cluster.wait_for("v1/ServiceAccount", ready, f"the service account of {name}", namespace=name)
    yield name
    cluster.delete("v1/Namespace", name)


@pytest.fixture
def exercise_cluster(cluster: Cluster) -> Iterator[Cluster]:
    """Yield the API server, and delete the objects of the exercise afterwards."""
    yield cluster
    clean_up(cluster)
