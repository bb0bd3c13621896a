"""The bill of materials: what uv says is installed with Flexspot, the licence of each, and the programs that a lab is built from.

Run as `make sbom`, which hands it what `uv export --format cyclonedx1.5` prints. The same lock and the same environment make the same file.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import PackageNotFoundError, metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.metadata import PackageMetadata

_OF_CLASSIFIERS = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
"""SPDX's identifier by the classifier of PyPI, for packages from before PEP 639, which brought License-Expression."""

_OF_TEXTS = {"3-Clause BSD License": "BSD-3-Clause"}
"""SPDX's identifier by what packages write instead of it."""

_READ = {"promql-parser": "MIT"}
"""Of packages whose metadata says nothing: the licence in their files, read 2026-11-26."""

_CHANGING = ("serialNumber",)
"""What uv draws anew each time; CycloneDX does not ask for it."""


def whole_bill(exported: dict[str, Any]) -> dict[str, Any]:
    """A bill in CycloneDX as uv exports it, with licences and with what the lab is built from, and without what changes from run to run."""
    bill = {key: value for key, value in exported.items() if key not in _CHANGING}
    bill["metadata"] = {key: value for key, value in exported["metadata"].items() if key != "timestamp"}
    bill["components"] = [*map(_licensed, exported["components"]), *_of_the_lab()]
    return bill


def _licensed(component: dict[str, Any]) -> dict[str, Any]:
    """A component with its licence; as it was where the package is not installed here, such as one for another operating system."""
    try:
        expression = licence_of(metadata(component["name"]))
    except PackageNotFoundError:
        return component
    return component if expression is None else component | {"licenses": [{"expression": expression}]}


def licence_of(package: PackageMetadata) -> str | None:
    """A package's licence as an SPDX expression.

    It is what the package says of itself (PEP 639), else what its classifiers say, of which several are a choice, else the text of the old
    field, else what was read in its files.
    """
    if "License-Expression" in package:
        return package["License-Expression"]
    prefix = "License :: "
    classifiers = [each.rpartition(" :: ")[2] for each in package.get_all("Classifier") or () if each.startswith(prefix)]
    if known := sorted({_OF_CLASSIFIERS[each] for each in classifiers if each in _OF_CLASSIFIERS}):
        return " OR ".join(known)
    written = (package.get_all("License") or [""])[0]
    return _OF_TEXTS.get(written, written) or _READ.get(package["Name"])


def _of_the_lab() -> Iterator[dict[str, Any]]:
    """The Go modules whose programs a lab builds on the user's machine; they are in no wheel. Each one's go.sum holds what it needs."""
    from lab.tools.build import all_families  # noqa: PLC0415

    # Two families may be built from one module; it stands once, for the lab if either is.
    modules: dict[tuple[str, str], bool] = {}
    for family in all_families():
        key = (family.module, family.version)
        modules[key] = modules.get(key, True) and family.on_request
    for (module, release), on_request in modules.items():
        purl = f"pkg:golang/{module}@{release}"
        yield {
            "type": "application",
            "bom-ref": purl,
            "name": module,
            "version": release,
            "purl": purl,
            "scope": "optional",
            "properties": [{"name": "flexspot:built-for", "value": "the lab, on request" if on_request else "the lab"}],
        }


if __name__ == "__main__":
    json.dump(whole_bill(json.load(sys.stdin)), sys.stdout, indent=2, sort_keys=True)
    sys.stdout.write("\n")
