"""What a cloud offers, by the provider's data sources: versions of clusters and of add-ons, and nothing is made of one that it has not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from addon_versions import ADDON_TOKEN, DEFAULTS
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


@pytest.mark.parametrize("kubernetes", ["1.34", "1.35"])
def test_the_version_of_an_add_on_that_aws_recommends_follows_the_clusters(kubernetes: str, bare_world: CloudWorld) -> None:
    name = "aws-ebs-csi-driver"
    bare_world.change("dev-eks", cluster={"version": kubernetes, "ami": "al2023@v20260903", "addon_versions": {name: "recommended"}})

    done = bare_world.flexspot("preview", "-s", "dev-eks", "--plan-out", "plan.json")

    assert done.returncode == 0, done.stdout + done.stderr
    resources = json.loads((bare_world.checkout.folder / "plan.json").read_text(encoding="utf-8"))["resources"]
    [driver] = [each["inputs"] for each in resources if each["inputs"].get("addonName") == name]
    assert driver["addonVersion"] == DEFAULTS[name, kubernetes]
    assert ("invoke", ADDON_TOKEN) in {(event.operation, event.urn) for event in bare_world.cloud.events()}


def test_an_add_on_that_aws_has_not_for_the_clusters_version_ends_the_preview(bare_world: CloudWorld) -> None:
    bare_world.change(
        "dev-eks", cluster={"version": "1.35", "ami": "al2023@v20260903", "addon_versions": {"metrics-server": "recommended"}}
    )

    done = bare_world.flexspot("preview", "-s", "dev-eks")

    assert done.returncode == 1, done.stdout + done.stderr
    assert "(metrics-server, 1.35): couldn't find resource" in done.stdout + done.stderr


def test_offline_the_version_that_aws_recommends_is_told_as_unknown(bare_world: CloudWorld) -> None:
    bare_world.change(
        "dev-eks", cluster={"version": "1.35", "ami": "al2023@v20260903", "addon_versions": {"metrics-server": "recommended"}}
    )

    done = bare_world.flexspot("preview", "-s", "dev-eks", "--offline", "--plan-out", "plan.json")

    assert done.returncode == 0, done.stdout + done.stderr
    resources = json.loads((bare_world.checkout.folder / "plan.json").read_text(encoding="utf-8"))["resources"]
    given = {each["inputs"]["addonName"]: each["inputs"].get("addonVersion") for each in resources if "addonName" in each["inputs"]}
    assert given["metrics-server"] == {"$unknown": True}
