"""A configuration with own rules, objects that these judge, and their verdicts. Not a test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policies.core import judge
from policies.inventory.reading.source import from_manifest
from policies.judging import DEFAULTS
from policies.lint.configuration import Configuration, read_configuration

if TYPE_CHECKING:
    from pathlib import Path

    from capacity.values.verdict import Verdict


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


def configured(folder: Path, text: str = RULES) -> Configuration:
    folder.mkdir(exist_ok=True)
    (folder / "flexspot-lint.yaml").write_text(text)
    return read_configuration(folder / "flexspot-lint.yaml")


def deployment(image: Any, **metadata: Any) -> dict[str, Any]:
    spec = {"template": {"spec": {"containers": [{"name": "web", "image": image}]}}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "team-a", **metadata}, "spec": spec}


def verdict(configuration: Configuration, manifest: dict[str, Any], rule: str = "image-of-our-registry") -> tuple[Verdict, str]:
    [finding] = [each for each in judge(from_manifest(manifest), configuration.own, DEFAULTS) if each.rule == rule]
    return finding.verdict, finding.message


RIGHT, WRONG = deployment("registry.acme.com/web:1"), deployment("docker.io/web:1")


ONE_RULE = RULES.partition("  - name: quota-is-small")[0]
