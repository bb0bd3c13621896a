"""Settings that `flexspot settings check` accepts are accepted by components, the clouds' providers and the clouds' API descriptions.

The check promises that a preview will not refuse them. Settings are those of a shipped stack with several edits at once, which together
change every setting. Nightly runs also have pools, classes and teams drawn from the catalogs.
"""

from __future__ import annotations

from typing import Any

import pytest
from declared_inputs import refused_inputs
from edited_stacks import edited_stacks
from google_models import refused_requests as refused_by_google
from hypothesis import HealthCheck, assume, given, seed, settings
from program_declarations import declared
from request_judge import refused_requests
from valid_settings import valid_settings

from flexspot.capacity.catalog.platform import Platform
from flexspot.capacity.plan.build import build_plan
from flexspot.capacity.settings.stack_file import parse_settings
from flexspot.capacity.values.errors import SettingsError

EXAMPLES = {Platform.EKS: 6, Platform.GKE: 4}
"""Number of settings. Declaring one takes a second."""

MANY = {Platform.EKS: 25, Platform.GKE: 12}
"""Number of settings in each of the parts that run in parallel every night."""

AT_NIGHT = pytest.mark.nightly(tested_by="test_accepted_settings_are_declared_and_accepted_by_components_and_providers")


@pytest.mark.slow
@pytest.mark.parametrize("cloud", EXAMPLES)
@pytest.mark.parametrize("part", [0, *(pytest.param(number, marks=AT_NIGHT) for number in range(1, 5))])
def test_accepted_settings_are_declared_and_accepted_by_components_and_providers(part: int, cloud: Platform) -> None:
    documents = edited_stacks(cloud.value) | valid_settings([cloud]) if part else edited_stacks(cloud.value)

    @seed(part)
    @settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much], max_examples=(MANY if part else EXAMPLES)[cloud])
    @given(documents)
    def judged(document: dict[str, Any]) -> None:
        try:
            build_plan(parse_settings(document, "settings"), "settings")
        except SettingsError:
            assume(False)

        made = declared("generated", document).made.values()

        assert made
        assert refused_inputs(made) == []
        assert refused_requests(made) == []
        assert refused_by_google(made) == []

    judged()
