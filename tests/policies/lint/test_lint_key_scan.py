"""The scan that spares the parser: a yes is certain, whatever the text; a no only asks the parser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lint_runs import linted

from policies.lint.key_scan import has_unique_keys
from policies.lint.yaml_reading import DocumentRefusedError, documents_in

if TYPE_CHECKING:
    from pathlib import Path

CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {}
spec:
  names:
    kind: Widget  # no key
  versions:
  - name: v1
    schema:
      description: |-
        a text with
        a: key
        a: key
      rule: self.a ==
        'x' &&
        self.b
      message: 'it''s
        quoted: text'
      other: "an \\"escaped\\"
        text: too"
    served: true
  - name: v2
    enum: [a, b]
"""


def has_duplicates(text: bytes) -> bool:
    try:
        return any(document.duplicates for document in documents_in(text))
    except DocumentRefusedError:
        return False


def test_a_duplicate_in_a_definition_is_a_finding(tmp_path: Path) -> None:
    twice = CRD.replace("    served: true\n", "    served: true\n    served: false\n")
    report = linted(tmp_path, crd_yaml=twice, good_yaml=CRD)

    assert [(each.finding.rule, each.line) for each in report.open] == [("duplicate-key", 22)]
    assert has_unique_keys(CRD.encode()), "an ordinary definition needs no parser"


WRITTEN = b"""a: 1;b:;c: |;- a: 1;- b;-;d: 'x;y';e: "x;z";# c;;f: [a];f: {a: 1};? a;: b;text;g: text goes;'a': 1;- - a: 1;h: >-;\
i: 'a' # it's;&& on;{a: 1,;a: 2};[a,;b];<<: *x;j: &x"""
LINES = st.sampled_from(WRITTEN.split(b";"))


@pytest.mark.slow
@settings(max_examples=500)
@given(st.lists(st.tuples(st.integers(0, 3), LINES), max_size=12))
def test_no_text_with_a_duplicate_gets_a_yes(lines: list[tuple[int, bytes]]) -> None:
    text = b"\n".join(b"  " * depth + line for depth, line in lines) + b"\n"

    assert not (has_unique_keys(text) and has_duplicates(text)), text
