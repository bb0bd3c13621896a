"""Whatever settings accept, components accept, and so do the clouds' providers and AWS's own models of its requests.

`flexspot settings check` promises that a preview will not refuse them. With `--hypothesis-profile=wide` it is tried with 300 settings.
"""

from __future__ import annotations

from typing import Any

import pytest
from declared_inputs import refused_inputs
from hypothesis import HealthCheck, assume, given, settings
from program_declarations import declared
from request_judge import refused_requests
from whole_settings import whole_settings

from capacity.catalog.platform import Platform
from capacity.plan.build import build_plan
from capacity.settings.stack_file import parse_settings
from capacity.values.errors import SettingsError

pytestmark = pytest.mark.thorough

EXAMPLES = {Platform.EKS: 20, Platform.GKE: 10}
"""Declaring one takes a second."""

WIDE = {Platform.EKS: 200, Platform.GKE: 100}

CASES = WIDE if settings.get_current_profile_name() == "wide" else EXAMPLES
UNHURRIED = [HealthCheck.too_slow, HealthCheck.filter_too_much]


@given(whole_settings(Platform.EKS))
@settings(suppress_health_check=UNHURRIED, max_examples=CASES[Platform.EKS])
def test_what_settings_of_eks_accept_is_declared_and_nobody_refuses_it(document: dict[str, Any]) -> None:
    judge(document)


@given(whole_settings(Platform.GKE))
@settings(suppress_health_check=UNHURRIED, max_examples=CASES[Platform.GKE])
def test_what_settings_of_gke_accept_is_declared_and_nobody_refuses_it(document: dict[str, Any]) -> None:
    judge(document)


def judge(document: dict[str, Any]) -> None:
    try:
        build_plan(parse_settings(document, "settings"), "settings")
    except SettingsError:
        assume(False)

    made = declared("generated", document).made.values()

    assert made
    assert refused_inputs(made) == []
    assert refused_requests(made) == []
