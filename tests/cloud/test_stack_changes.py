"""The effect of an edit of every setting of the shipped cloud stacks: no stateful resource is lost silently.

The judges are the providers' rules (provider_rules), models of the engine's and the Kubernetes provider's code (engine_steps and
rule_differences), and refusals of the clouds' APIs (flexspot/infra/deployment/api_refusals.yaml). `make test` applies a tenth of the edits,
which has every kind of edit and every outcome. All of them are applied nightly.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from guide_tables import guide, part, with_part
from setting_edits import ROOTS, edits_of, settings_of, without_edit
from snapshot_fixtures import REWRITE, assert_snapshot
from stack_changes import (
    reviewed,
    row_of,
    sections,
    snapshot_of,
    table,
    text_of,
)

from flexspot.infra.deployment.api_refusals import known_refusals
from flexspot.infra.deployment.losses import HeldKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    Row = dict[str, Any]

both_clouds = pytest.mark.parametrize("cloud", sorted(ROOTS))

NIGHTLY = pytest.mark.nightly(tested_by="test_the_outcomes_of_a_tenth_of_the_edits_match_the_reviewed_ones")
PARTS = 4
"""Number of parts, so that several processes share the edits."""

ANOTHER_PLACE = frozenset({"environment", "region", "project", "account"})
"""Settings that identify another platform: the whole stack is created again under other names or elsewhere."""


def rows(cloud: str) -> Iterator[tuple[str, Row]]:
    for setting, edits in reviewed(cloud).items():
        if not isinstance(edits, str):
            yield from ((setting, edit) for edit in edits)


@both_clouds
def test_every_setting_of_the_schema_has_an_edit_or_a_reason(cloud: str) -> None:
    settings = [setting.path for setting in settings_of(cloud)]

    assert list(reviewed(cloud)) == settings
    without = {path: edits for path, edits in reviewed(cloud).items() if isinstance(edits, str)}
    assert without == without_edit(cloud)


def outcomes(row: Row) -> Iterator[tuple[str, str]]:
    """Return what an edit covers: its kind, each outcome of it and of its reversal, each loss, and each rule that refuses it."""
    yield "kind", row["kind"]
    yield "stack", row["stack"]
    for way in ("does", "back"):
        yield from ((way, outcome) for outcome in row[way] or ["nothing"])
        for outcome in ("replaces", "deletes", "the cloud refuses"):
            yield from ((outcome, each.partition(" ")[0]) for each in row[way].get(outcome, ()))
        for outcome in ("also replaces", "also deletes", "creates"):
            counted = row[way].get(outcome)
            yield from ((outcome, each) for each in (counted if isinstance(counted, dict) else ()))


def sample(cloud: str) -> dict[str, Row]:
    """Return the smallest set of reviewed rows found greedily that has an example of everything, by setting and edit."""
    left = [*rows(cloud)]
    found: dict[str, Row] = {}
    lacking = {each for _, row in left for each in outcomes(row)}
    while lacking:
        setting, row = max(left, key=lambda each: len(lacking.intersection(outcomes(each[1]))))
        found[f"{setting} | {row['edit']}"] = row
        lacking.difference_update(outcomes(row))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@both_clouds
def test_the_outcomes_of_a_tenth_of_the_edits_match_the_reviewed_ones(cloud: str, part: int) -> None:
    reviewed_rows = dict([*sample(cloud).items()][part::PARTS])
    assert reviewed_rows
    settings = dict.fromkeys(each.partition(" | ")[0] for each in reviewed_rows)
    edits = {f"{setting} | {edit.words}": edit for setting in settings for edit in edits_of(cloud, setting)}

    assert {name: row_of(edits[name]) for name in reviewed_rows} == reviewed_rows


@NIGHTLY
@pytest.mark.parametrize("cloud, section", [(cloud, section) for cloud in sorted(ROOTS) for section in sections(cloud)])
def test_the_outcomes_of_all_edits_match_the_reviewed_ones(cloud: str, section: str) -> None:
    assert_snapshot(text_of(table(cloud, section)), snapshot_of(cloud, section))


@both_clouds
def test_no_table_is_left_of_a_removed_section(cloud: str) -> None:
    assert {path.stem for path in snapshot_of(cloud, "any").parent.iterdir()} == set(sections(cloud))


@both_clouds
def test_the_guides_table_is_generated_from_the_reviewed_one(cloud: str) -> None:
    path = guide(cloud)
    wanted = with_part(path.read_text(encoding="utf-8"), part(cloud, reviewed(cloud)))
    if os.environ.get(REWRITE) == "1":
        path.write_text(wanted, encoding="utf-8")

    assert path.read_text(encoding="utf-8") == wanted, f"run the test with {REWRITE}=1 and review what git shows"


@both_clouds
def test_a_production_preview_refuses_to_delete_the_cluster_or_its_network(cloud: str) -> None:
    """They are protected in the state, so the change is refused before anything is deleted."""
    whole = {f"{HeldKind.CLUSTER} cluster-cluster", f"{HeldKind.NETWORK} network-vpc", f"{HeldKind.NETWORK} network-network"}

    unrefused = [
        f"{setting}: {edit['edit']}"
        for setting, edit in rows(cloud)
        if edit["stack"].startswith("prod-")
        and whole & {*edit["does"].get("replaces", []), *edit["does"].get("deletes", [])}
        and "preview refuses for" not in edit["does"]
        and setting != "cluster.deletion_protection"
    ]
    assert unrefused == []


@both_clouds
def test_production_up_asks_to_confirm_the_replacement_of_every_stateful_resource(cloud: str) -> None:
    """Compares flexspot/infra/deployment/losses.py with the providers' replacements, including pools and teams' storage."""
    held = [edit[way] for _, edit in rows(cloud) if edit["stack"].startswith("prod-") for way in ("does", "back")]
    anew = [does for does in held if "replaces" in does]

    assert any(each.startswith(f"{HeldKind.TEAM_STORAGE} ") for does in anew for each in does["replaces"])
    assert [does for does in anew if not does.get("production asks leave for")] == []
    # Removing a pool or a team from the file is confirmation enough.
    assert [does for does in held if not {"replaces", "deletes"} & does.keys() and "production asks leave for" in does] == []


@both_clouds
def test_no_edit_replaces_a_bucket_unless_it_identifies_another_platform(cloud: str) -> None:
    lost = {
        setting
        for setting, edit in rows(cloud)
        for way in ("does", "back")
        if any(each.startswith(HeldKind.BUCKET) for each in (*edit[way].get("replaces", []), *edit[way].get("deletes", [])))
    }

    assert lost <= ANOTHER_PLACE


@both_clouds
def test_an_edit_that_only_the_cloud_refuses_deletes_nothing_first(cloud: str) -> None:
    """No engine preview knows of the refusal, so anything deleted before that step is lost.

    A subnet's replacement is refused before the old one is deleted. No cloud reports another account; only Flexspot's preview does.
    """
    refused = [(setting, edit[way]) for setting, edit in rows(cloud) for way in ("does", "back") if "the cloud refuses" in edit[way]]

    at_update = [(setting, does) for setting, does in refused if does["the cloud refuses"] not in (["subnet-overlap"], ["account"])]
    assert [setting for setting, does in at_update if "replaces" in does and "preview refuses for" not in does] == []
    assert {rule for _, does in refused for rule in does["the cloud refuses"]} <= known_refusals().keys()
