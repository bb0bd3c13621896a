"""The reader that spares the parser: what it reads is what the parser reads; of the rest it says that it does not know."""

from __future__ import annotations

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


def read(text: str) -> Document | None:
    found = READER.read(text)
    return Document(found[0], found[1] + 1, (), found[2]) if found else None


def agrees(text: str) -> bool | None:
    """Whether the parser reads the same, in the same order and of the same types; None where the reader leaves the text to it."""
    found = read(text)
    if found is None:
        return None
    try:
        documents = composed_documents(text.encode())
    except DocumentRefusedError:
        return False
    return repr(documents) == repr([found])


@pytest.mark.parametrize(
    "text",
    [
        NODE_POOL.format(number=1, gpus=8),
        GPU_MANIFEST.format(number=1, team=2, parallelism=3, digest="0" * 64, cores=4, memory=16, gpus=8),
        "# of ours\n---\n# here\na: 1 # one\n\n'b': \"two\"\n",
        "a:\n- b: 1\n  c:\n  - d\n  -\n- e\nf:\n",
        "a:\n  -\n    b: 1\n  -\n    - 2\n",
        "a: |\n  one\n\n   two\nb: |-\n  three\n\n\nc: |+\n  four\n\nd: 5\n",
        "a: |\n  # no comment\n# a comment\nb: 1\n",
        "a: {}\nb: []\nc: {d: [1, 'x', \"y\"], e: {f: null}} # all\n",
        "a: it's a text # and no more\nb: 'it''s'\nc: x#y\nd: a:b\n",
        "image: registry.example/train:1@sha256:00\ngpus: ${GPUS}\nname: <name>\n",
        "a: \u00fcber \u2013 alles\n",
    ],
)
def test_ordinary_yaml_needs_no_parser(text: str) -> None:
    assert agrees(text) is True


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\na: 2\n",
        "a: &x 1\nb: *x\n",
        "a: !!str 1\n",
        "a: >\n  folded\n  text\n",
        "a: one\n  two\n",
        "a: 'one\n  two'\n",
        'a: "\\u0041"\n',
        "a: {b: 1,\n  c: 2}\n",
        "a: {{ .Values.a }}\n",
        "<<: {a: 1}\nb: 1\n",
        "? a\n: 1\n",
        "- a\n",
        "a\n",
        "a: b: c\n",
        "a:\n\t- b\n",
        "a: 1\r\nb: 2\r\n",
        "a: 1\n...\n",
        "a:\n   b: 1\n  c: 2\n",
        "a: |2\n   x\n",
        "a: |\n  no end of line",
        "a: [1, , 2]\n",
        "a: [1 2: 3]\n",
        "a: \u0085\n",
        "a: \ufeff\n",
        "a:\n" + "".join(f"{'  ' * depth}a:\n" for depth in range(1, 90)),
    ],
)
def test_all_else_is_left_to_the_parser(text: str) -> None:
    assert read(text) is None


INDENTS = st.sampled_from(["", " ", "  ", "  ", "    ", "      "])
PIECES = st.sampled_from(
    [
        *(
            "a:",
            "b:",
            "c: 1",
            "'a': x",
            '"b": y',
            "a : 1",
            "a:b",
            "a: b: c",
            "<<: x",
            "a.b/c: v",
            "-1: x",
            "?",
            "? a",
            ": a",
            "~:",
            "null: 1",
        ),
        *("- a", "- b: 1", "-", "- - a", "-a", "- |", "- {a: 1}", "--- # x", "---", "...", "- 'x", "- # x", "- a:", "-  a: 1", "- -1"),
        *(
            "a: |",
            "b: |-",
            "c: |+",
            "a: >",
            "a: |2",
            "a: | # x",
            "a: |x",
            "# a",
            "a: # b",
            "a: 'it''s'",
            "a: 'x",
            "x'",
            'a: "x',
            'y"',
            "a: 'x' y",
        ),
        *(
            "a: [1, 2]",
            "a: [1,",
            "2]",
            "a: {b: 1, c: [x]}",
            "a: {b}",
            "a: [a: 1]",
            "a: [-, x]",
            "a: [--x, -1]",
            "a: {b: }",
            "a: {b:1}",
            "a: []x",
        ),
        *(
            "a: {'b': 1}",
            "a: {b: c: d}",
            "a: [a b, c#d]",
            "a: [a #b]",
            "a: ['x'y]",
            "a: [x]#y",
            "a: {a: 1, a: 2}",
            "a: {<<: 1}",
            "a: [x:y, z:]",
        ),
        *(
            "a: &x 1",
            "a: *x",
            "a: !t 1",
            "a: @x",
            "a: `x`",
            "a: %x",
            "a: $X",
            "a: ${X}",
            "a: <x>",
            "a: {{ x }}",
            'a: "{{ x }}"',
            "a: -",
            "a: - b",
        ),
        *(
            "a: ?x",
            "a: :x",
            "a: ,x",
            "a: x,",
            "a: x]",
            "a: x: ",
            "a: x:",
            "a: x #y",
            "a: x#y",
            "a: x\\y",
            'a: "x\\n"',
            "a: x ",
            "a:  x",
            "a:\tx",
            "\t",
        ),
        *(
            "text",
            "more text",
            "text: ",
            "key with blanks: 1",
            "a: 0x1F",
            "a: 1_0",
            "a: 1.0",
            "a: 012",
            "a: yes",
            "a: ~",
            "a: 2026-01-01",
            "a: \u00e9",
        ),
        *(
            "",
            "",
            " ",
            "a: ''",
            'a: ""',
            "a: [ ]",
            "a: { }",
            "a: [ x ]",
            "a: {  b: 1  }",
            "a: ['', \"\"]",
            "a: [*x]",
            "a: [?x]",
            "a: [x?]",
            "a: =",
            "a: =",
        ),
    ]
)
TEXTS = st.lists(st.tuples(INDENTS, PIECES).map("".join), min_size=1, max_size=9).map("\n".join)


@pytest.mark.slow
@settings(max_examples=800, deadline=None)
@given(TEXTS, st.sampled_from(["", "\n"]))
@example("a: |\n    \n  b\n", "")
@example("a:\n- |\n  x\n", "")
def test_no_text_is_read_otherwise_than_by_the_parser(text: str, end: str) -> None:
    assert agrees(text + end) is not False


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(st.text(alphabet="ab:-{}[],'\"#|>&*!?%@~. \n", max_size=30))
def test_no_text_of_signs_is_read_otherwise_than_by_the_parser(text: str) -> None:
    assert agrees(text) is not False


@pytest.mark.slow
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


def test_a_long_line_or_many_lines_take_time_in_proportion() -> None:
    import time  # noqa: PLC0415 -- of this test alone

    def seconds(text: str) -> float:
        begun = time.process_time()
        read(text)
        return time.process_time() - begun

    for sign in ("a: " + "x " * 4_900, "a: " + "[" * 9_000, "a: '" + "''" * 4_900, "- " * 5_000, "a: " + "- " * 4_900, " " * 9_999 + "#"):
        assert seconds(sign + "\n") < 0.5, sign[:20]
