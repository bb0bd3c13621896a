"""Stacks that a pull request may affect, by the files that it changes."""

from __future__ import annotations

import pytest

from flexspot.infra.review.revisions import StackFile, affected, meaningful, stack_file_of

DEV = b"config:\n  flexspot:platform:\n    environment: dev\n    prices_file: ../prices/own.yaml\n"
STACKS = {
    "dev": stack_file_of("stacks/Pulumi.dev.yaml", (DEV, DEV)),
    "prod": StackFile("stacks/Pulumi.prod.yaml"),
}


def touched(path: str, before: bytes | None = b"a: 1\n", after: bytes | None = b"a: 2\n") -> list[str]:
    return affected({path: (before, after)}, STACKS)


def test_a_stack_file_affects_its_stack() -> None:
    assert touched("stacks/Pulumi.dev.yaml") == ["dev"]


def test_a_file_that_a_stack_names_affects_that_stack() -> None:
    assert touched("prices/own.yaml") == ["dev"]


@pytest.mark.parametrize("path", ["__main__.py", "pools/training.json", "Pulumi.yaml", "uv.lock"])
def test_files_that_the_program_may_read_affect_every_stack(path: str) -> None:
    assert touched(path) == ["dev", "prod"]


@pytest.mark.parametrize("path", ["README.md", "docs/how.md", ".github/workflows/flexspot.yaml", ".gitignore"])
def test_files_that_only_people_and_services_read_affect_no_stack(path: str) -> None:
    assert touched(path) == []


@pytest.mark.parametrize(
    "path, before, after",
    [
        ("stacks/Pulumi.dev.yaml", b"a: 1\n", b"# more\na:   1 # less\n"),
        ("__main__.py", b"x = 1\n", b"# why\nx  =  1\n"),
    ],
)
def test_comments_affect_nothing(path: str, before: bytes, after: bytes) -> None:
    assert not meaningful(path, before, after)


@pytest.mark.parametrize(
    "before, after",
    [(b"a: 1\n", b'a: "1"\n'), (b"a: [1, 2]\n", b"a: [2, 1]\n"), (b"a: 1\n", b"a: !x 1\n"), (b"a: &b 1\nc: *b\n", b"a: &b 1\nc: 1\n")],
)
def test_a_different_yaml_value_affects_a_stack(before: bytes, after: bytes) -> None:
    assert meaningful("x.yaml", before, after)


def test_a_new_or_deleted_file_affects_a_stack() -> None:
    assert meaningful("x.yaml", None, b"")
    assert meaningful("x.py", b"", None)


def test_other_files_than_yaml_and_python_are_compared_by_their_bytes() -> None:
    assert meaningful("x.yaml", b"a: [", b"a: [1")
    assert meaningful("x.py", b"x = (", b"x = )")
    assert meaningful("x.bin", b"\0", b"\1")


def test_aliases_for_billions_of_values_are_compared_at_once() -> None:
    """The "billion laughs" attack: composing and comparing the values would never end."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30))]
    bomb = "\n".join(lines).encode()

    assert meaningful("x.yaml", bomb, bomb + b"\nb: 1\n")
    assert not meaningful("x.yaml", bomb, bomb + b"\n# no more\n")
