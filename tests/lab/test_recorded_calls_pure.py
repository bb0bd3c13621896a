"""The recorded calls that need no control plane: Check and Diff, and the settings of the provider.

Their answers are the same with one (test_recorded_calls.py); here they come in seconds.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from pulumi.runtime.proto import provider_pb2
from recorded_calls import SCENARIOS, Line, differences, expected, lines, message_of, without_the_arbitrary, written
from recorded_kinds import RecordedKinds

from lab.providers import planning
from lab.providers.settings import Settings, changed_settings, settings_in
from lab.providers.values import decode, encode

pytestmark = pytest.mark.thorough

COUNTS = {
    "Handshake": 290,
    "GetPluginInfo": 290,
    "CheckConfig": 234,
    "DiffConfig": 211,
    "Configure": 285,
    "Check": 2174,
    "Diff": 2160,
    "Create": 377,
    "Read": 397,
    "Update": 170,
    "Delete": 269,
    "Invoke": 4,
    "Cancel": 288,
}

_CLIENT_SIDE = re.compile(r"^csa-\S+ Check \S+ .inputs.metadata.labels.app.kubernetes.io/managed-by: \"pulumi\" -> ")
"""The label of client-side apply, which the stand-in does not offer."""

_AUTONAME = re.compile(r"-[0-9a-f]{8}$")


def test_the_recordings_are_whole() -> None:
    counted = Counter(each.method for scenario in SCENARIOS for each in lines(scenario) if each.is_call)
    assert dict(counted) == COUNTS


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_checks_and_diffs_are_answered_as_recorded(scenario: str) -> None:
    kinds = RecordedKinds()
    settings = Settings()
    found: list[str] = []
    compared: Counter[str] = Counter()
    for each in lines(scenario):
        if each.method == "Configure":
            settings = settings_in(each.request["args"])
        if each.unanswered or each.method not in {"Check", "Diff", "DiffConfig"}:
            continue
        answer = _answered(each, kinds, settings)
        compared[each.method] += 1
        one, other = without_the_arbitrary(_with_any_name(expected(each))), without_the_arbitrary(_with_any_name(answer))
        found += [f"{each.where} {difference}" for difference in differences(one, other)]
    asked = Counter(each.method for each in lines(scenario) if each.method in {"Check", "Diff", "DiffConfig"} and not each.unanswered)
    assert compared == asked
    assert [line for line in found if not _CLIENT_SIDE.match(line)] == []
    assert bool(found) == (scenario == "12-provider-settings")


def _answered(each: Line, kinds: RecordedKinds, settings: Settings) -> dict[str, Any]:
    request = message_of(each.method, each.request)
    if each.method == "DiffConfig":
        changed = changed_settings(decode(request.olds), decode(request.news))
        return {"changes": "DIFF_SOME", "diffs": changed} if changed else {"changes": "DIFF_NONE"}
    if each.method == "Check":
        inputs = planning.check(kinds, settings, request.urn, decode(request.olds), decode(request.news), seed=request.randomSeed)
        return written(provider_pb2.CheckResponse(inputs=encode(inputs)))
    verdict = planning.diff(
        kinds,
        settings,
        state=decode(request.olds),
        old_inputs=decode(request.old_inputs),
        news=decode(request.news),
        ignored=list(request.ignoreChanges),
    )
    return written(verdict.answer())


def _with_any_name(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer with a sign for the random end of a name that was drawn for it."""
    metadata = answer.get("inputs", {}).get("metadata", {})
    if metadata.get("annotations", {}).get("pulumi.com/autonamed"):
        metadata["name"] = _AUTONAME.sub("-<random>", metadata["name"])
    return answer
