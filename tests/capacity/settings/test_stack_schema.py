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
    """Return a validator of the schema, as Any because the stubs of jsonschema do not type its methods."""
    schema = stack_file_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def content(stack: str) -> dict[str, Any]:
    return yaml.safe_load((STACKS / f"Pulumi.{stack}.yaml").read_text())


@pytest.mark.parametrize("stack", ["local", "dev-gke", "prod-gke", "dev-eks", "prod-eks"])
def test_every_shipped_stack_is_valid(stack: str, validator: Any) -> None:
    validator.validate(content(stack))


@pytest.mark.parametrize(
    "stack,where,wrong,message",
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
def test_an_editor_rejects_what_the_models_reject(
    stack: str, where: tuple[str | int, ...], wrong: object, message: str, validator: Any
) -> None:
    changed = deepcopy(content(stack))
    at: Any = changed["config"]["flexspot:platform"]
    for step in where[:-1]:
        at = at[step]
    at[where[-1]] = wrong

    assert any(message in error.message for error in validator.iter_errors(changed)), [e.message for e in validator.iter_errors(changed)]


def test_an_editor_requires_an_image_unless_aws_chooses_it(validator: Any) -> None:
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
"""Words that the description of a setting contains if its name ends in a unit."""


def settings() -> dict[str, dict[str, Any]]:
    """Return the schema of every setting, by model and name."""
    definitions: dict[str, Any] = stack_file_schema()["$defs"]
    return {f"{model}.{name}": field for model, each in definitions.items() for name, field in each.get("properties", {}).items()}


@pytest.mark.slow
def test_an_editor_can_explain_every_setting() -> None:
    assert len(settings()) > 200
    assert [name for name, field in settings().items() if not field["description"].endswith(".")] == []


def test_the_description_of_a_setting_with_a_unit_names_it() -> None:
    united = {
        name: (unit, field["description"])
        for name, field in settings().items()
        for end, unit in UNITS.items()
        if name.endswith(end) and "$ref" not in field.get("items", {})
    }

    assert len(united) > 30
    assert {name: field for name, (unit, field) in united.items() if unit.lower() not in field.lower()} == {}


def test_the_description_of_an_optional_setting_names_its_default() -> None:
    """Fields of classes are an exception: without a value they are as shipped, as the description of the model says."""
    optional = {name: field["description"] for name, field in settings().items() if field.get("default", "") is None}

    assert [name for name, field in optional.items() if "efault" not in field and not name.startswith("ClassSettings.")] == []


def settings_of(schema: dict[str, Any]) -> Iterator[str]:
    """Yield the names of all settings in a model and in the models inside it."""
    for model in (schema, *schema.get("$defs", {}).values()):
        yield from model.get("properties", {})


def test_the_page_is_written_from_the_settings() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "write it anew: python -m flexspot.capacity.settings.stack_schema"


@pytest.mark.parametrize("platform", MODELS, ids=str)
def test_the_page_has_a_row_for_every_setting(platform: Platform) -> None:
    rows = set(re.findall(r"^\| `(\w+)` \|", page(), re.MULTILINE))

    assert set(settings_of(MODELS[platform].model_json_schema())) - rows == set()


@pytest.mark.slow
def test_every_link_to_a_section_of_the_page_has_a_target() -> None:
    headings = {heading.lower().replace(" ", "-") for heading in re.findall(r"^#+ (.+)$", page(), re.MULTILINE)}
    texts = [path.read_text(encoding="utf-8") for path in PAGE.parent.rglob("*.md")]
    asked = {target for text in (page(),) for target in re.findall(r"\]\(#([\w-]+)\)", text)}
    asked |= {target for text in texts for target in re.findall(r"settings-reference\.md#([\w-]+)", text)}

    assert len(asked) > 15
    assert asked - headings == set()
