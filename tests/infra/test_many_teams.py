"""The tenancy and queues of many teams, deployed by the real engine through the policy pack to a real control plane."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from checkout_fixtures import CHECKOUT

from flexspot.infra.declaring import program
from flexspot.infra.declaring.program import KUBECONFIG_VARIABLE
from flexspot.infra.deployment.engine import StackRun
from flexspot.lab.cluster import Cluster, condition
from flexspot.lab.engine import engine_for, state_url

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.capacity.settings.platform import PlatformSettings
    from flexspot.lab.cluster import KubeObject
    from flexspot.lab.control_plane import LabControlPlane
    from flexspot.lab.tools.build import Tools

pytestmark = [
    pytest.mark.lab,
    pytest.mark.engine,
    pytest.mark.nightly(tested_by="test_up_deploys_everything_then_changes_nothing_and_destroy_leaves_nothing"),
]

TEAMS = int(os.environ.get("FLEXSPOT_TEAMS", "20"))
"""The platform is designed for 200, which would take minutes."""

DEPARTMENTS = 10
CLUSTER_QUEUE = "kueue.x-k8s.io/v1beta2/ClusterQueue"


def ignore(_line: str) -> None:
    """Drop a line of output."""


def many_teams() -> dict[str, Any]:
    """Return the local stack's settings with many teams: two GPUs each in departments that lend to each other, one for inference."""
    settings = yaml.safe_load((CHECKOUT / "stacks" / "Pulumi.local.yaml").read_text())["config"]["flexspot:platform"]
    spot, on_demand = settings["pools"]
    return settings | {
        "pools": [spot | {"max_nodes": 2 * TEAMS + DEPARTMENTS}, on_demand | {"max_nodes": TEAMS}],
        "cohorts": [
            {"name": f"department-{number}", "weight": 1 + number % 3, "shares": {"l4-spot": 1}, "borrowing_limits": {"l4-spot": 20}}
            for number in range(DEPARTMENTS)
        ],
        "teams": [
            {
                "name": f"team-{number:03}",
                "cohort": f"department-{number % DEPARTMENTS}",
                "weight": 1 + number % 4,
                "shares": {"l4-spot": 2},
                "unqueued": {"l4-on-demand": 1},
            }
            for number in range(TEAMS)
        ],
    }


@pytest.fixture
def run(stack_lab: LabControlPlane, tools: Tools, monkeypatch: pytest.MonkeyPatch) -> Iterator[StackRun]:
    """Yield an engine run of the local stack with many teams. The lab is deleted afterwards, without destroying the stack first."""
    home = stack_lab.home
    monkeypatch.setenv(KUBECONFIG_VARIABLE, str(home.kubeconfig))
    parse = program.parse_settings

    def with_many_teams(_value: object, source: str) -> PlatformSettings:
        return parse(many_teams(), source)

    monkeypatch.setattr(program, "parse_settings", with_many_teams)
    with engine_for(home.kubeconfig, tools) as engine:
        yield StackRun("local", home.folder / "project", state_url(home), engine.root, engine.environment)


def test_many_teams_are_deployed_their_queues_become_active_and_a_second_up_changes_nothing(
    run: StackRun, stack_lab: LabControlPlane
) -> None:
    created = run.up(ignore)["create"]
    assert created > 10 * TEAMS, "namespace, quotas, defaults, access, network and queues of every team"

    def all_active(queues: list[KubeObject]) -> bool:
        # Each team has one for work with GPUs and one for work without.
        return len(queues) == 2 * TEAMS and all(condition(each, "Active") for each in queues)

    Cluster(stack_lab.home.kubeconfig).wait_for(CLUSTER_QUEUE, all_active, "every ClusterQueue to be active")

    again = run.up(ignore)
    assert set(again) == {"same"}, again
