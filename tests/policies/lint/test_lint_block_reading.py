"""The reader that spares the parser reads what the parser reads, or leaves the text to it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from bench_lint import GPU_MANIFEST, MODULES, NODE_POOL, module_folder
from hypothesis import example, given, settings
from hypothesis import strategies as st

from policies.lint.block_reading import BlockReader
from policies.lint.chunks import yaml_chunks
from policies.lint.yaml_reading import Document, DocumentRefusedError, composed_documents, ordinary_scalar

CHECKOUT = Path(__file__).resolve().parents[3]
READER = BlockReader(ordinary_scalar)


def agrees(text: str) -> bool | None:
    """Whether the parser reads the same, in the same order and of the same types; None where the reader leaves the text to it."""
    found = READER.read(text)
    if found is None:
        return None
    try:
        documents = composed_documents(text.encode())
    except DocumentRefusedError:
        return False
    return repr(documents) == repr([Document(found[0], found[1] + 1, (), found[2])])


@pytest.mark.parametrize(
    "text",
    [
        NODE_POOL.format(number=1, gpus=8),
        GPU_MANIFEST.format(number=1, team=2, parallelism=3, digest="0" * 64, cores=4, memory=16, gpus=8),
        "# of ours\n---\n# here\na: 1 # one\n\n'b': \"two\"\n",
        "a:\n- b: 1\n  c:\n  - d\n  -\n- e\nf:\n",
        "a: |\n  one\n\n   two\nb: |-\n  three\n\n\nc: |+\n  four\n\nd: 5\n",
        "image: registry.example/train:1@sha256:00\ngpus: ${GPUS}\nname: <name>\n",
    ],
)
def test_ordinary_yaml_needs_no_parser(text: str) -> None:
    assert agrees(text) is True


INDENTS = st.sampled_from(["", " ", "  ", "  ", "    ", "      "])
PIECES = st.sampled_from(
    [
        *("a:", "b:", "c: 1", "'a': x", '"b": y', "a : 1", "a:b", "a: b: c", "<<: x", "a.b/c: v", "-1: x", "? a", ": a", "~:", "null: 1"),
        *("- a", "- b: 1", "-", "- - a", "-a", "- |", "- {a: 1}", "--- # x", "---", "...", "- 'x", "- # x", "- a:", "-  a: 1", "- -1"),
        *("a: |", "b: |-", "c: |+", "a: >", "a: |2", "a: | # x", "# a", "a: # b", "a: 'it''s'", "a: 'x", "x'", 'a: "x', 'y"', "a: 'x' y"),
        *("a: [1, 2]", "a: [1,", "2]", "a: {b: 1, c: [x]}", "a: {b}", "a: [a: 1]", "a: [-, x]", "a: [--x, -1]", "a: {b: }", "a: []x"),
        *("a: {'b': 1}", "a: {b: c: d}", "a: [a #b]", "a: ['x'y]", "a: [x]#y", "a: {a: 1, a: 2}", "a: {<<: 1}", "a: [x:y, z:]", "a: {b:1}"),
        *("a: &x 1", "a: *x", "a: !t 1", "a: @x", "a: `x`", "a: %x", "a: ${X}", "a: <x>", "a: {{ x }}", 'a: "{{ x }}"', "a: -", "a: - b"),
        *(
            "a: ?x",
            "a: :x",
            "a: ,x",
            "a: x]",
            "a: x: ",
            "a: x #y",
            "a: x#y",
            "a: x\\y",
            'a: "x\\n"',
            "a: x ",
            "a:\tx",
            "\t",
            "text",
            "text: ",
        ),
        *("a b: 1", "a: 0x1F", "a: 1_0", "a: 1.0", "a: 012", "a: yes", "a: ~", "a: 2026-01-01", "a: \u00e9", "", "", " ", "a: ''", 'a: ""'),
        *("a: [ ]", "a: { }", "a: {  b: 1  }", "a: ['', \"\"]", "a: [*x]", "a: [?x]", "a: [x?]", "a: =", "a: \u0085", "a: \ufeff"),
    ]
)
TEXTS = st.lists(st.tuples(INDENTS, PIECES).map("".join), min_size=1, max_size=9).map("\n".join)


@pytest.mark.slow
@settings(max_examples=800, deadline=None)
@given(TEXTS, st.sampled_from(["", "\n"]))
@example("a: |\n    \n  b\n", "")
@example("a:\n- |\n  x\n", "")
@example("a: 1\na: 2", "\n")
@example("a: 1\r\nb: 2\r", "\n")
@example("a: |\n  no end of line", "")
@example("a:\n" + "".join(f"{'  ' * depth}a:\n" for depth in range(1, 90)), "")
def test_no_text_is_read_otherwise_than_by_the_parser(text: str, end: str) -> None:
    assert agrees(text + end) is not False


@pytest.mark.nightly(held_by="test_no_text_is_read_otherwise_than_by_the_parser")
def test_the_files_of_others_are_read_as_the_parser_reads_them() -> None:
    folders = [*(module_folder(module, family) for module, family in MODULES.items()), CHECKOUT / "tests", CHECKOUT / "stacks"]
    counted = {True: 0, False: 0, None: 0}
    for path in (path for folder in folders for path in folder.rglob("*.yaml") if path.stat().st_size < 200_000):
        for chunk in yaml_chunks(path.read_bytes()):
            if b"apiVersion" in chunk.text and b"{{" not in chunk.text:
                counted[agrees(chunk.text.decode())] += 1
    assert counted[False] == 0
    # Most of what people write; of the rest each reads a little slower.
    assert counted[True] > 3 * counted[None] > 0


def test_a_long_line_takes_time_in_proportion() -> None:
    for sign in ("a: " + "x " * 4_900, "a: " + "[" * 9_000, "a: '" + "''" * 4_900, "- " * 5_000, "a: " + "- " * 4_900, " " * 9_999 + "#"):
        begun = time.process_time()
        READER.read(sign + "\n")
        assert time.process_time() - begun < 0.5, sign[:20]
