"""A version that no release channel offers: the preview says so, by the provider's data source, and nothing is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from engine_versions import TOKEN

if TYPE_CHECKING:
    from cloud_world import CloudWorld

pytestmark = pytest.mark.engine


@pytest.mark.parametrize("command", ["preview", "up"])
def test_a_version_that_the_channel_does_not_offer_is_refused_before_anything_is_made(command: str, bare_world: CloudWorld) -> None:
    bare_world.change("dev-gke", cluster={"min_version": "1.39"})

    done = bare_world.flexspot(command, "-s", "dev-gke", *(["--yes"] if command == "up" else []))

    assert done.returncode == 1, done.stdout + done.stderr
    told = "GkeCluster cluster: min_version is '1.39', and the channel regular offers no release of it; its default is 1.34.6-gke.1100000"
    assert told in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    assert {(event.operation, event.urn) for event in bare_world.cloud.events()} == {("invoke", TOKEN)}


def test_offline_nobody_is_asked_what_the_channel_offers(bare_world: CloudWorld) -> None:
    bare_world.change("dev-gke", cluster={"min_version": "1.39"})

    done = bare_world.flexspot("preview", "-s", "dev-gke", "--offline")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "min_version" not in done.stdout + done.stderr
