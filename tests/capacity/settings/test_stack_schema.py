"""The JSON schema of stack files agrees with the models that read them."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from capacity.settings.stack_schema import stack_file_schema

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
        ("dev-gke", ("pools", 0, "machine"), "g2-standard-9", "'g2-standard-9' is not one of ["),
        ("dev-gke", ("pools", 0, "alternatives"), ["g2-standard-4"], "'alternatives' was unexpected"),
        ("dev-eks", ("pools", 0, "alternatives"), ["g2-standard-4"], "'g2-standard-4' is not one of ["),
        ("dev-eks", ("pools", 0, "capacity_type"), "spott", "'spott' is not one of ["),
        ("dev-eks", ("teams", 0, "shares", "l4-spot"), -1, "-1 is less than the minimum of 0"),
        ("local", ("classes", "training", "prioritty"), 5, "'prioritty' was unexpected"),
        ("prod-eks", ("cluster", "ami"), "al2023", "'al2023' does not match"),
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


def test_other_programs_keys_are_left_alone(validator: Any) -> None:
    changed = content("local")
    changed["config"]["aws:region"] = "us-east-1"
    changed["secretsprovider"] = "awskms://alias/x"

    validator.validate(changed)
