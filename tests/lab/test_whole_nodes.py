"""Admitted work runs: teams share nodes of eight GPUs as a whole, on real Kueue and the real scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from kubernetes.client.exceptions import ApiException
from queue_fixtures import GUARDS, QueuePlatform, queues_of

from flexspot.lab.cluster import condition

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from queue_objects import Register

    from flexspot.lab.cluster import Cluster

pytestmark = pytest.mark.lab

NODES = 4
SHARES = {"alpha": 16, "beta": 8, "gamma": 8}


def large_nodes(cluster: Cluster, register: Register, without: tuple[str, ...] = ()) -> AbstractContextManager[QueuePlatform]:
    """Return four nodes of eight GPUs, with the vCPU and memory of a p5.48xlarge, in shares of 16, 8 and 8."""
    pool = {"name": "h100", "machine": "p5.48xlarge", "capacity_type": "spot", "max_nodes": NODES, "serves": ["training", "interactive"]}
    teams = [{"name": team, "shares": {"h100": gpus}} for team, gpus in SHARES.items()]
    return queues_of(cluster, register, {"h100": NODES}, pools=[pool], teams=teams, without=without)


def test_each_team_gets_its_share_of_large_nodes_whatever_the_others_have(cluster: Cluster, register: Register) -> None:
    with large_nodes(cluster, register) as platform:
        # Four pods of one GPU fit into alpha's share. On four nodes they would leave no whole node to the others.
        with pytest.raises(ApiException, match="for a pod, and no pool of this team has nodes for such pods: it would wait for ever"):
            platform.submit("alpha", "small", pods=4)

        for number in range(NODES):
            platform.submit("alpha", f"large-{number}", gpus=8)
        platform.wait_for_running("alpha", *(f"large-{number}" for number in range(NODES)))

        for team in ("beta", "gamma"):
            platform.submit(team, "own", "interactive", gpus=8)
        for team in ("beta", "gamma"):
            platform.wait_for_running(team, "own")
        kept = {name for name, each in platform.workloads("alpha").items() if condition(each, "Admitted")}
        assert len(kept) == SHARES["alpha"] // 8
        platform.wait_for_running("alpha", *kept)


def test_kueue_gives_whole_nodes_to_no_smaller_pods_even_without_the_policies(cluster: Cluster, register: Register) -> None:
    """The second line of defence, against what controllers create: the flavor's taint, which only pods with all GPUs of a node tolerate."""
    with large_nodes(cluster, register, without=GUARDS) as platform:
        platform.submit("alpha", "small")
        said = platform.wait_for_refusal("alpha", "small", "untolerated taint")

        assert "flexspot.dev/whole-node" in said
        platform.submit("beta", "own", gpus=8)
        platform.wait_for_running("beta", "own")
