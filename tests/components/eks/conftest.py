"""Fixtures shared by tests of EksCluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from eks_cluster_args import args

from flexspot.components.eks.cluster import EksCluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from component_types import Register


@pytest.fixture
def registered_with(register: Register) -> Callable[..., Any]:
    """Return the resources that EksCluster registers with some arguments changed."""

    def run(**changes: Any) -> Any:
        return register(lambda: EksCluster("eks", args(**changes)))

    return run
