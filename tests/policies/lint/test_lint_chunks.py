"""Documents of a file's text, with the line where each begins."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from flexspot.policies.lint.yaml_reading import Chunk, markdown_chunks, yaml_chunks


@pytest.mark.parametrize(
    "text,chunks",
    [
        (b"a: 1", [(0, b"a: 1")]),
        (b"# c\n---\na: 1\n---\n\n--- # x\nb: 2\n", [(1, b"---\na: 1\n"), (5, b"--- # x\nb: 2\n")]),
        (b"---\n---\n# only a comment\n---", []),
        (b"a: |\n  ---\n  b\n---x: 1\n", [(0, b"a: |\n  ---\n  b\n---x: 1\n")]),
        (b"%YAML 1.1\n---\na: 1\n---\nb: 2\n", [(0, b"%YAML 1.1\n---\na: 1\n"), (3, b"---\nb: 2\n")]),
        (b"a: 1\r\n---\r\nb: 2\r\n", [(0, b"a: 1\r\n"), (1, b"---\r\nb: 2\r\n")]),
        (b"--- {a: 1}\n---\t|\n  x\n", [(0, b"--- {a: 1}\n"), (1, b"---\t|\n  x\n")]),
        (b"%YAML 1.1\n", []),
        (b"# c\n%YAML 1.1\n# d\n---\na: 1\n", [(0, b"# c\n%YAML 1.1\n# d\n---\na: 1\n")]),
        (b"--- # c\n...\n", [(0, b"--- # c\n...\n")]),
        (b"", []),
    ],
)
def test_documents_are_split_at_their_separators(text: bytes, chunks: list[tuple[int, bytes]]) -> None:
    assert [(chunk.line, chunk.text) for chunk in yaml_chunks(text)] == chunks


@given(
    st.lists(st.sampled_from([b"a: 1\n", b"---\n", b"--- # c\n", b"\n", b"# c\n", b"b: |\n  x\n  ---\n", b"c: [1,\n 2]\n"]), max_size=12)
)
def test_chunks_contain_the_documents_of_the_whole_text(lines: list[bytes]) -> None:
    text = b"".join(lines)
    try:
        whole = [each for each in yaml.load_all(text, Loader=yaml.CSafeLoader) if each is not None]
    except yaml.YAMLError:
        return
    parts = [each for chunk in yaml_chunks(text) for each in yaml.load_all(chunk.text, Loader=yaml.CSafeLoader) if each is not None]

    assert parts == whole


MARKDOWN = b"""\
# Title
```yaml
a: 1
---
b: 2
```
- in a list

  ```yml title="x.yaml"
  c:
    d: 1
  ```
```sh
kubectl apply
```
~~~JSON
{"e": 1}
~~~
````yaml
f: |
  ```
  g
````
```yaml
never: closed
"""


def test_markdown_gives_its_fenced_yaml_and_json_without_the_indentation_of_their_list() -> None:
    assert list(markdown_chunks(MARKDOWN)) == [
        Chunk(2, b"a: 1\n"),
        Chunk(3, b"---\nb: 2\n"),
        Chunk(9, b"c:\n  d: 1\n"),
        Chunk(16, b'{"e": 1}\n'),
        Chunk(19, b"f: |\n  ```\n  g\n"),
    ]
