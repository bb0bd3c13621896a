"""Fixtures shared by tests of GkeCluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from gke_cluster_args import CLUSTER, args

from flexspot.components.gke.cluster import GkeCluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from component_types import Register


@pytest.fixture
def cluster_of(register: Register) -> Callable[..., dict[str, Any]]:
    """Return the inputs of the cluster that GkeCluster creates with some arguments changed."""

    def run(**changes: Any) -> dict[str, Any]:
        [inputs] = register(lambda: GkeCluster("gke", args(**changes))).of(CLUSTER)
        return inputs

    return run
