"""The bill of materials: what Flexspot is made of and under which licences, judged by the format's own library."""

from __future__ import annotations

import json
import re
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from installed_fixtures import CHECKOUT, uv
from license_expression import get_spdx_licensing

from infra.cli.sbom import whole_bill
from lab.tools.build import all_families

if TYPE_CHECKING:
    from collections.abc import Iterator

ALLOWED = {"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MIT-0", "MPL-2.0", "PSF-2.0"}
"""Licences under which a package may be used in whatever is made with it. MPL-2.0 asks only that changes to its own files are shown."""

OF_OTHER_MACHINES = {"colorama"}
"""Installed on Windows alone, so that nothing here says its licence."""


@pytest.fixture(scope="module")
def bill() -> dict[str, Any]:
    exported = uv("export", "--quiet", "--locked", "--no-dev", "--all-extras", "--format", "cyclonedx1.5")
    return whole_bill(json.loads(exported))


def packages(bill: dict[str, Any]) -> Iterator[dict[str, Any]]:
    return (each for each in bill["components"] if each["purl"].startswith("pkg:pypi/"))


@pytest.mark.slow
def test_the_formats_own_schema_takes_it(bill: dict[str, Any]) -> None:
    # The library takes a quarter of a second for each address, of which there are several hundred.
    shorter = [each | {"externalReferences": each.get("externalReferences", [])[:1]} for each in bill["components"][::10]]

    assert JsonStrictValidator(SchemaVersion.V1_5).validate_str(json.dumps(bill | {"components": shorter})) is None


def test_every_package_has_a_licence_that_lets_anybody_use_what_is_made_with_it(bill: dict[str, Any]) -> None:
    spdx = get_spdx_licensing()
    said = {each["name"]: [licence["expression"] for licence in each.get("licenses", [])] for each in packages(bill)}

    assert {name for name, found in said.items() if not found} == OF_OTHER_MACHINES
    asked_for = {name: spdx.parse(found[0], validate=True) for name, found in said.items() if found}
    assert {name: str(each) for name, each in asked_for.items() if not {str(key) for key in spdx.license_keys(each)} <= ALLOWED} == {}


def test_what_a_project_asks_for_is_in_it(bill: dict[str, Any]) -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(each for extra in project["optional-dependencies"].values() for each in extra)]
    names = {re.split(r"[\[~=<>! ;]", each)[0] for each in wanted}

    # Extras are made of extras, too.
    assert names - {each["name"] for each in packages(bill)} - {"flexspot", "flexspot-runtime"} == set()


def test_what_a_lab_is_built_from_stands_in_it_as_optional_with_its_version(bill: dict[str, Any]) -> None:
    built = [(each["name"], each["version"]) for each in bill["components"] if each["purl"].startswith("pkg:golang/")]

    assert sorted(built) == sorted({(each.module, each.version) for each in all_families()})
    assert {each["scope"] for each in bill["components"] if each["purl"].startswith("pkg:golang/")} == {"optional"}
