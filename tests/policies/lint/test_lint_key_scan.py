"""The scan that spares the parser: a yes is certain, whatever the text; a no only asks the parser."""

from __future__ import annotations

import pytest
from bench_lint import MODULES, module_folder
from hypothesis import given, settings
from hypothesis import strategies as st
from lint_runs import linted

from policies.lint.chunks import yaml_chunks
from policies.lint.key_scan import has_unique_keys
from policies.lint.yaml_reading import DocumentRefusedError, documents_in

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


def test_ordinary_definitions_need_no_parser() -> None:
    assert has_unique_keys(CRD.encode())
    assert not has_duplicates(CRD.encode())


@pytest.mark.parametrize(
    "old,new",
    [
        ("  names:\n", "  names:\n    kind: Gadget\n"),
        ("    served: true\n", "    served: true\n    served: false\n"),
        ("  - name: v2\n", "  - name: v2\n    name: v3\n"),
        ("      other:", "      message: again\n      other:"),
        ("    enum: [a, b]\n", "    enum: [a, b]\n    enum: []\n"),
        ("spec:\n", "metadata: {}\nspec:\n"),
        ("    enum: [a, b]\n", "    enum: [{a: 1, a: 2}]\n"),
        ("    enum: [a, b]\n", "    enum:\n      x, {a: 1, a: 2}\n"),
        ("    enum: [a, b]\n", '    "name": v3\n'),
        ("    served: true\n", "    it: 'x' # it's\n    it: 'y'\n    that: it's\n"),
        ("    served: true\n", "    ? served\n    : true\n    ? served\n    : true\n"),
    ],
)
def test_a_duplicate_is_never_taken_for_unique(old: str, new: str) -> None:
    text = CRD.replace(old, new, 1).encode()

    assert text != CRD.encode()
    assert not has_unique_keys(text)


WRITTEN = b"""a: 1;b:;c: |;- a: 1;- b;-;d: 'x;y';e: "x;z";# c;;f: [a];f: {a: 1};? a;: b;text;g: text goes;'a': 1;- - a: 1;h: >-;\
i: 'a' # it's;&& on;{a: 1,;a: 2};[a,;b];<<: *x;j: &x"""
LINES = st.sampled_from(WRITTEN.split(b";"))


@pytest.mark.slow
@settings(max_examples=500)
@given(st.lists(st.tuples(st.integers(0, 3), LINES), max_size=12))
def test_no_text_with_a_duplicate_gets_a_yes(lines: list[tuple[int, bytes]]) -> None:
    text = b"\n".join(b"  " * depth + line for depth, line in lines) + b"\n"

    assert not (has_unique_keys(text) and has_duplicates(text)), text


def test_a_duplicate_in_a_definition_is_a_finding(tmp_path_factory: pytest.TempPathFactory) -> None:
    twice = CRD.replace("    served: true\n", "    served: true\n    served: false\n")
    report = linted(tmp_path_factory.mktemp("definitions"), crd_yaml=twice, good_yaml=CRD)

    assert [(each.finding.rule, each.line) for each in report.open] == [("duplicate-key", 22)]


@pytest.mark.engine
def test_the_definitions_of_the_modules_need_no_parser() -> None:
    folders = [module_folder(module, family) for module, family in MODULES.items()]
    texts = [path.read_bytes() for folder in folders for path in folder.rglob("*.yaml") if path.is_file()]
    definitions = [chunk.text for text in texts for chunk in yaml_chunks(text) if b"\nkind: CustomResourceDefinition\n" in chunk.text]
    rendered = [text for text in definitions if b"{{" not in text]

    assert len([text for text in rendered if has_unique_keys(text)]) >= 0.9 * len(rendered) > 10
    assert not [text[:200] for text in rendered if has_duplicates(text)]
