"""Every recorded call of the official Kubernetes provider, sent to the stand-in: its answer must be the same.

The calls are played in their order on a separate control plane, with the actions by hand between them. The state in the requests is the
recorded one, so this also shows that the stand-in continues from what the official provider wrote.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from provider_driver import driving
from recorded_calls import SCENARIOS, lines
from recorded_cluster import RecordedCluster
from recorded_replay import Replay

if TYPE_CHECKING:
    from flexspot.lab.control_plane import LabControlPlane
    from flexspot.lab.tools.build import Tools

pytestmark = pytest.mark.lab

_PATIENCE_SECONDS = 1.0
"""Instead of the 63 s that the official provider waits for a missing kind or namespace."""


@dataclass(frozen=True)
class Known:
    """A known difference: the scenario, the pattern of the lines of differences, and its reason."""

    scenario: str
    pattern: str
    reason: str


_NO_CSA = "client-side apply is not offered: the setting is refused, and the calls after it are answered with server-side apply"
_ONE_SERVER = "a context that is not the lab's is refused with the settings, and not at the first change"

KNOWN: tuple[Known, ...] = (
    Known("12-provider-settings", r"^csa-\S+ (CheckConfig|Configure) ", _NO_CSA),
    Known("12-provider-settings", r"^csa-\S+ Check \S+ .inputs.metadata.labels.app.kubernetes.io/managed-by: \"pulumi\"", _NO_CSA),
    Known("12-provider-settings", r"^csa-\S+ Create \S+ .properties.__fieldManager: \"pulumi-kubernetes\" ->", _NO_CSA),
    Known("12-provider-settings", r"^csa-\S+ (Update|Read) np .properties.metadata.managedFields", _NO_CSA),
    Known("12-provider-settings", r"^wrong-context-preview (CheckConfig|Configure) ", _ONE_SERVER),
)

_THE_ENGINES = {"@engine", "@pending"}
"""The engine's results, which no provider returns."""


def replayed(scenario: str, lab: LabControlPlane, tools: Tools) -> Replay:
    recorded_cluster = RecordedCluster(tools.binary("kubectl"), lab.home.kubeconfig)
    with driving(lab.home.kubeconfig, _PATIENCE_SECONDS) as driver:
        replay = Replay(list(lines(scenario)), driver.stub, recorded_cluster, str(lab.home.kubeconfig))
        try:
            replay.play()
        finally:
            recorded_cluster.clear()
            recorded_cluster.close()
    return replay


OFTEN = frozenset({"02-fresh-up", "13-upsert-local"})
"""The local stack once more: 01 has its objects, 03 to 07 the edits, drifts and ways to take over existing objects."""


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(each, marks=pytest.mark.nightly(tested_by="test_every_recorded_call_is_answered_as_recorded"))
        if each in OFTEN
        else each
        for each in SCENARIOS
    ],
)
def test_every_recorded_call_is_answered_as_recorded(scenario: str, stack_lab: LabControlPlane, tools: Tools) -> None:
    replay = replayed(scenario, stack_lab, tools)
    expected_counts = Counter("unanswered" if each.unanswered else each.method for each in lines(scenario))
    assert replay.compared == {method: count for method, count in expected_counts.items() if method not in _THE_ENGINES}
    known = [each for each in KNOWN if each.scenario == scenario]
    unknown = [line for line in replay.found if not any(re.search(each.pattern, line) for each in known)]
    assert unknown == []
    gone = [each for each in known if not any(re.search(each.pattern, line) for line in replay.found)]
    assert gone == []
