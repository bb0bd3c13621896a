"""A cloud without machines for a pool: queued work moves on to the team's next pool, and the guarantee still applies.

The pod of StockOutWatch is a process here, with the rights of its own service account. Karpenter's event is written as Karpenter does.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from queue_fixtures import RESOURCE_FLAVOR, queues_of
from service_fixtures import pod_environment
from test_queue_flavors import ALPHA, ON_DEMAND, SPOT
from workload_fixtures import requeue, time_out_waiting, wait_until_pending

from flexspot.components.kueue.stock_out_watch import CREDENTIALS_VARIABLE, HOLD_VARIABLE, UNTIL_ANNOTATION, look
from flexspot.components.kueue.stock_outs import NAME, StockOutWatch
from flexspot.lab.cluster import POD, condition

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from queue_fixtures import QueuePlatform
    from queue_objects import Register

    from flexspot.lab.cluster import Cluster, KubeObject

pytestmark = [pytest.mark.lab, pytest.mark.waits]

BY_QUOTA = {"training": {"capacity": ["spot", "on-demand"]}}
POOLS = [{**each, "node_sharing": True} for each in (SPOT, ON_DEMAND)]
BETA = {"name": "beta", "shares": {"l4-spot": 0}}


@pytest.fixture
def platform(cluster: Cluster, register: Register) -> Iterator[QueuePlatform]:
    """Yield a node of the on-demand pool. There is no Spot node, but quota for one."""
    with queues_of(cluster, register, {"l4-on-demand": 1}, pools=POOLS, classes=BY_QUOTA, teams=[ALPHA, BETA]) as deployed:
        yield deployed


@pytest.fixture
def environment(cluster: Cluster, register: Register, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Yield the environment of the watch's pod: the API server's address, and the token of its account with its role's rights."""
    namespace = f"queueing-{uuid4().hex[:6]}"
    deployed = register(lambda: StockOutWatch("watch", {"namespace": namespace, "labels": {}}))
    objects = [each for token, _, each in deployed.resources if any(kind in token for kind in ("Account", "ClusterRole"))]
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    cluster.apply(*objects)
    yield {
        **pod_environment(cluster, namespace, NAME, tmp_path),
        CREDENTIALS_VARIABLE: str(tmp_path),
        HOLD_VARIABLE: "1800",
    }
    for each in objects:
        if each["kind"] != "ServiceAccount":
            cluster.delete(f"{each['apiVersion']}/{each['kind']}", each["metadata"]["name"])
    cluster.delete("v1/Namespace", namespace)


@contextmanager
def karpenter_finds_none(platform: QueuePlatform, pool: str, job: str, team: str = "alpha") -> Generator[None]:
    """Create the events of a NodeClaim for a pod of a job, for which the cloud had no machine."""
    claim = f"{platform.own(pool)}-{uuid4().hex[:5]}"
    pod = pod_of(platform, job, team)
    about_pod = {"apiVersion": "v1", "kind": "Pod", "name": pod, "namespace": platform.own(team)}
    about_claim = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": claim}
    happened_at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    texts = {
        "Nominated": (about_pod, f"Pod should schedule on: nodeclaim/{claim}"),
        "InsufficientCapacityError": (about_claim, f"NodeClaim {claim} event: all requested instance types were unavailable during launch"),
    }
    events = [
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{claim}.{number}", "namespace": about.get("namespace", "default")},
            "involvedObject": about,
            "reason": reason,
            "message": text,
            "type": "Warning",
            "source": {"component": "karpenter"},
            "firstTimestamp": happened_at,
            "lastTimestamp": happened_at,
            "count": 1,
        }
        for number, (reason, (about, text)) in enumerate(texts.items())
    ]
    for each in events:
        platform.cluster.create(each)
    yield
    for each in events:
        platform.cluster.delete("v1/Event", each["metadata"]["name"], each["metadata"]["namespace"])


def pod_of(platform: QueuePlatform, job: str, team: str) -> str:
    """Return the name of a pod of a job, as soon as there is one."""

    def found(pods: list[KubeObject]) -> str | None:
        return next((each["metadata"]["name"] for each in pods if each["metadata"]["labels"].get("job-name") == job), None)

    return platform.cluster.wait_for(POD, found, f"a pod of {job}", namespace=platform.own(team))


def closed(platform: QueuePlatform, pool: str) -> bool:
    flavor = platform.cluster.get(RESOURCE_FLAVOR, platform.own(pool))
    assert flavor is not None
    return UNTIL_ANNOTATION in (flavor["metadata"].get("annotations") or {})


def test_after_a_failed_wait_a_job_goes_on_to_the_next_flavor_and_later_ones_at_once(
    platform: QueuePlatform, environment: dict[str, str]
) -> None:
    spot, on_demand = platform.own("l4-spot"), platform.own("l4-on-demand")
    platform.submit("alpha", "stocked-out", gpus=2)
    assert platform.wait_for_flavors("alpha", "stocked-out") == {spot}
    wait_until_pending(platform, "stocked-out", 1)

    with karpenter_finds_none(platform, "l4-spot", "stocked-out"):
        [said] = look(environment)
        assert re.fullmatch(rf"flavor {spot}: closed until \S+, because the cloud has no machines for it", said)
        assert look(environment) == [], "a second round finds it as it should be"
        time_out_waiting(platform, "stocked-out", "WaitForStart")
        requeue(platform, "stocked-out")
        platform.wait_for_running("alpha", "stocked-out")
        assert platform.wait_for_flavors("alpha", "stocked-out") == {on_demand}

        platform.submit("alpha", "next", gpus=2)
        assert platform.wait_for_flavors("alpha", "next") == {on_demand}
        for each in ("stocked-out", "next"):
            platform.wait_for_workload("alpha", each, lambda seen: condition(seen, "PodsReady"), "runs, and changes no more")
        platform.submit("alpha", "too-many", gpus=1)
        said = platform.wait_for_refusal("alpha", "too-many", "flexspot.dev/stock-out")
        assert spot in said, "a waiting user sees the reason"

    assert look(environment) == [], "the time that was written stays"
    platform.cluster.patch(RESOURCE_FLAVOR, spot, {"metadata": {"annotations": {UNTIL_ANNOTATION: "2026-11-25T12:00:00Z"}}})
    assert look(environment) == [f"flavor {spot}: reopened"]
    assert look(environment) == []
    assert platform.wait_for_flavors("alpha", "too-many") == {spot}, "the quota of the first flavor is there again"
    platform.wait_for_running("alpha", "stocked-out", "next")


def test_a_claim_that_a_member_narrowed_closes_nothing(platform: QueuePlatform, environment: dict[str, str]) -> None:
    narrow = platform.job("alpha", "narrow")
    narrow["spec"]["template"]["spec"]["nodeSelector"] = {"topology.kubernetes.io/zone": "us-east-1z"}
    platform.cluster.create(narrow)
    platform.submit("alpha", "broad")

    with karpenter_finds_none(platform, "l4-spot", "narrow"):
        assert look(environment) == []
        with karpenter_finds_none(platform, "l4-spot", "broad"):
            assert len(look(environment)) == 1
            assert closed(platform, "l4-spot")


@pytest.mark.nightly(tested_by="test_what_is_lent_and_runs_can_be_taken_back_in_an_open_flavor_alone")
def test_a_flavor_with_borrowed_gpus_at_work_stays_open_so_that_their_owner_gets_them_back(
    platform: QueuePlatform, environment: dict[str, str]
) -> None:
    platform.add_nodes("l4-spot", 1)
    platform.submit("beta", "borrower", gpus=4)
    assert platform.wait_for_flavors("beta", "borrower") == {platform.own("l4-spot")}
    platform.wait_for_running("beta", "borrower")
    platform.wait_for_workload("beta", "borrower", lambda each: condition(each, "PodsReady"), "runs")

    with karpenter_finds_none(platform, "l4-spot", "borrower", "beta"):
        look(environment)
        assert not closed(platform, "l4-spot")
        # Where possible, a queue moves on before it reclaims.
        platform.submit("alpha", "elsewhere", gpus=4)
        assert platform.wait_for_flavors("alpha", "elsewhere") == {platform.own("l4-on-demand")}
        platform.submit("alpha", "owner", gpus=4)
        assert platform.wait_for_flavors("alpha", "owner") == {platform.own("l4-spot")}
        platform.wait_for_running("alpha", "elsewhere", "owner")
