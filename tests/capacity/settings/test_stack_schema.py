"""The JSON schema of stack files and the page of all settings agree with the models that read them."""

from __future__ import annotations

import re
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
import yaml

from flexspot.capacity.settings.platform import MODELS
from flexspot.capacity.settings.stack_schema import PAGE, page, stack_file_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.capacity.catalog.platform import Platform


STACKS = Path(__file__).resolve().parents[3] / "stacks"


@pytest.fixture(scope="module")
def validator() -> Any:
    """Of type Any because the stubs of jsonschema leave its methods half unknown."""
    schema = stack_file_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def content(stack: str) -> dict[str, Any]:
    return yaml.safe_load((STACKS / f"Pulumi.{stack}.yaml").read_text())


@pytest.mark.parametrize("stack", ["local", "dev-gke", "prod-gke", "dev-eks", "prod-eks"])
def test_every_shipped_stack_fits_it(stack: str, validator: Any) -> None:
    validator.validate(content(stack))


@pytest.mark.parametrize(
    "stack,where,wrong,told",
    [
        ("dev-gke", ("cloud",), "gcp", "'gcp' is not one of ['local', 'gke', 'eks']"),
        ("dev-gke", ("pools", 0, "machine"), "g2_standard_8", "'g2_standard_8' is not valid under any of the given schemas"),
        ("dev-gke", ("pools", 0, "alternatives"), ["g2-standard-4"], "'alternatives' was unexpected"),
        ("dev-eks", ("pools", 0, "alternatives"), ["g2-standard-4"], "'g2-standard-4' is not valid under any of the given schemas"),
        ("dev-eks", ("pools", 0, "capacity_type"), "spott", "'spott' is not one of ["),
        ("dev-eks", ("teams", 0, "shares", "l4-spot"), -1, "-1 is less than the minimum of 0"),
        ("local", ("classes", "training", "prioritty"), 5, "'prioritty' was unexpected"),
        ("prod-eks", ("cluster", "ami"), "al2023", "'al2023' is not valid under any of the given schemas"),
        ("prod-eks", ("cluster", "version"), "v1.35", "'v1.35' does not match"),
    ],
)
def test_an_editor_is_told_what_the_models_refuse(
    stack: str, where: tuple[str | int, ...], wrong: object, told: str, validator: Any
) -> None:
    changed = deepcopy(content(stack))
    at: Any = changed["config"]["flexspot:platform"]
    for step in where[:-1]:
        at = at[step]
    at[where[-1]] = wrong

    assert any(told in error.message for error in validator.iter_errors(changed)), [e.message for e in validator.iter_errors(changed)]


def test_an_editor_asks_for_an_image_unless_aws_chooses_it(validator: Any) -> None:
    for mode, ami, taken in (("standard", True, True), ("standard", False, False), ("auto", False, True), (None, False, False)):
        changed = content("dev-eks")
        cluster = changed["config"]["flexspot:platform"]["cluster"]
        cluster |= {} if mode is None else {"mode": mode}
        if not ami:
            del cluster["ami"]
        assert validator.is_valid(changed) is taken, (mode, ami)


def test_other_programs_keys_are_left_alone(validator: Any) -> None:
    changed = content("local")
    changed["config"]["aws:region"] = "us-east-1"
    changed["secretsprovider"] = "awskms://alias/x"

    validator.validate(changed)


UNITS = {
    "_gib": "GiB",
    "_mib": "MiB",
    "_seconds": "Seconds",
    "_minutes": "Minutes",
    "_hours": "Hours",
    "_days": "Days",
    "_usd": "US dollars",
    "_percent": "Percent",
    "_percents": "percent",
    "_vcpu": "vCPU",
    "_utc": "UTC",
    "_nodes": "nodes",
    "_gpus": "GPUs",
    "_iops": "a second",
}
"""What the description of a setting says whose name ends in a unit."""


def settings() -> dict[str, dict[str, Any]]:
    """Every setting, by its model and name, and what the schema says of it."""
    definitions: dict[str, Any] = stack_file_schema()["$defs"]
    return {f"{model}.{name}": told for model, each in definitions.items() for name, told in each.get("properties", {}).items()}


@pytest.mark.slow
def test_an_editor_can_explain_every_setting() -> None:
    assert len(settings()) > 200
    assert [name for name, told in settings().items() if not told["description"].endswith(".")] == []


def test_a_setting_with_a_unit_says_which() -> None:
    united = {
        name: (unit, told["description"])
        for name, told in settings().items()
        for end, unit in UNITS.items()
        if name.endswith(end) and "$ref" not in told.get("items", {})
    }

    assert len(united) > 30
    assert {name: told for name, (unit, told) in united.items() if unit.lower() not in told.lower()} == {}


def test_a_setting_without_a_default_value_says_what_then_holds() -> None:
    """But for the fields of classes: what is left out there is as shipped, which the model says of all of them."""
    optional = {name: told["description"] for name, told in settings().items() if told.get("default", "") is None}

    assert [name for name, told in optional.items() if "efault" not in told and not name.startswith("ClassSettings.")] == []


def settings_of(schema: dict[str, Any]) -> Iterator[str]:
    """The names of all settings in a model and in those inside it."""
    for model in (schema, *schema.get("$defs", {}).values()):
        yield from model.get("properties", {})


def test_the_page_is_written_from_the_settings() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "write it anew: python -m flexspot.capacity.settings.stack_schema"


@pytest.mark.parametrize("platform", MODELS, ids=str)
def test_the_page_has_a_row_for_every_setting(platform: Platform) -> None:
    rows = set(re.findall(r"^\| `(\w+)` \|", page(), re.MULTILINE))

    assert set(settings_of(MODELS[platform].model_json_schema())) - rows == set()


@pytest.mark.slow
def test_every_link_to_a_part_of_the_page_leads_to_one() -> None:
    headings = {heading.lower().replace(" ", "-") for heading in re.findall(r"^#+ (.+)$", page(), re.MULTILINE)}
    texts = [path.read_text(encoding="utf-8") for path in PAGE.parent.rglob("*.md")]
    asked = {target for text in (page(),) for target in re.findall(r"\]\(#([\w-]+)\)", text)}
    asked |= {target for text in texts for target in re.findall(r"settings-reference\.md#([\w-]+)", text)}

    assert len(asked) > 15
    assert asked - headings == set()
