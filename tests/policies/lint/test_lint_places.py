"""The line that a finding points to: that of its field, or of the nearest existing parent."""

from __future__ import annotations

import pytest

from flexspot.policies.lint.file_reading import read_text
from flexspot.policies.lint.places import Places

TEXT = b"""\
# a comment
apiVersion: v1
kind: List
items:
  - apiVersion: v1
    kind: Pod
    metadata: {name: first}
  - apiVersion: batch/v1
    kind: Job
    metadata:
      name: train
    spec:
      template:
        spec:
          nodeSelector:
            nvidia.com/gpu.present: "true"
          initContainers:
            - {name: fetch}
          containers:
            - image: a
              name: sidecar
            - name: train
              resources:
                limits:
                  nvidia.com/gpu: 1
"""


def line(at: str = "", message: str = "", text: bytes = TEXT, path: str = "a.yaml") -> int:
    manifest = read_text(path, text).manifests[-1]
    return Places(lambda _: text).line(manifest, at, message)


@pytest.mark.parametrize(
    "at,message,expected",
    [
        ("", "nothing is named", 8),
        ("", "kubernetes.io/hostname is not here", 8),
        ("spec", "", 12),
        ("spec.template.spec.nodeSelector", "", 15),
        ('spec.template.spec.nodeSelector["nvidia.com/gpu.present"]', "", 16),
        ("spec.template.spec.containers[1].resources.limits", "", 24),
        ("spec.template.spec.containers[7]", "", 19),
        ("spec.template.spec.tolerations", "", 14),
        ("", "spec.template.spec.tolerations is empty", 14),
        ("", "spec.template.spec: container train requests too much", 22),
        ("", "spec.template.spec: container sidecar is idle", 20),
        ("", "spec.template.spec: container fetch is idle", 18),
        ("", "spec.template.spec: container absent is idle", 14),
        ("metadata.labels", "spec.template.spec is no matter", 10),
        ("status.unknown", "spec.template is", 13),
    ],
)
def test_a_finding_points_to_its_field_or_the_nearest_existing_parent(at: str, message: str, expected: int) -> None:
    assert line(at, message) == expected


def test_lines_in_markdown_and_after_other_documents_are_those_of_the_file() -> None:
    text = b"# x\n\n```yaml\na: 1\n---\n" + TEXT + b"```\n"

    assert line("spec", text=text, path="a.md") == 5 + 12


def test_a_finding_in_a_changed_file_points_to_the_line_of_its_object() -> None:
    manifest = read_text("a.yaml", TEXT).manifests[-1]

    assert Places(lambda _: b"a: [").line(manifest, "spec", "") == manifest.line
    assert Places(lambda _: b"").line(manifest, "spec", "") == manifest.line
