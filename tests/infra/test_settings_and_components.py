"""Whatever settings accept, components accept, and so do the clouds' providers and the clouds' own descriptions of their requests.

`flexspot settings check` promises that a preview will not refuse them. Half of the settings have pools, classes and teams drawn from the
catalogs, half are a shipped stack with several edits at once, which between them change every setting that there is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from declared_inputs import refused_inputs
from edited_stacks import edited_stacks
from google_models import refused_requests as refused_by_google
from hypothesis import HealthCheck, assume, given, seed, settings
from program_declarations import declared
from request_judge import refused_requests
from valid_settings import valid_settings

from capacity.catalog.platform import Platform
from capacity.plan.build import build_plan
from capacity.settings.stack_file import parse_settings
from capacity.values.errors import SettingsError

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

pytestmark = pytest.mark.slow

EXAMPLES = {Platform.EKS: 6, Platform.GKE: 4}
"""For each way to draw them. Declaring one takes a second."""

MANY = {Platform.EKS: 25, Platform.GKE: 12}
"""In each of the parts that run every night, side by side."""

UNHURRIED = [HealthCheck.too_slow, HealthCheck.filter_too_much]
AT_NIGHT = pytest.mark.nightly(held_by="test_what_settings_accept_is_declared_and_nobody_refuses_it")


@pytest.mark.parametrize("cloud", EXAMPLES)
@pytest.mark.parametrize("part", [0, *(pytest.param(number, marks=AT_NIGHT) for number in range(1, 5))])
@pytest.mark.parametrize("drawn", ["from the catalogs", "by edits"])
def test_what_settings_accept_is_declared_and_nobody_refuses_it(drawn: str, part: int, cloud: Platform) -> None:
    documents = valid_settings([cloud]) if drawn == "from the catalogs" else edited_stacks(cloud.value)

    run(documents, part, (MANY if part else EXAMPLES)[cloud])


def run(documents: SearchStrategy[dict[str, Any]], part: int, examples: int) -> None:
    @seed(part)
    @settings(suppress_health_check=UNHURRIED, max_examples=examples)
    @given(documents)
    def judged(document: dict[str, Any]) -> None:
        judge(document)

    judged()


def judge(document: dict[str, Any]) -> None:
    try:
        build_plan(parse_settings(document, "settings"), "settings")
    except SettingsError:
        assume(False)

    made = declared("generated", document).made.values()

    assert made
    assert refused_inputs(made) == []
    assert refused_requests(made) == []
    assert refused_by_google(made) == []
