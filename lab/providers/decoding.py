"""Reading YAML as the official Kubernetes provider does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar

import yaml

if TYPE_CHECKING:
    from lab.cluster import KubeObject


class _GoLoader(yaml.SafeLoader):
    """YAML 1.1 as Go's parser has it, which takes a lone y or n for a boolean; PyYAML does not."""

    bool_values: ClassVar[dict[str, bool]] = {**yaml.SafeLoader.bool_values, "y": True, "n": False}


_GoLoader.add_implicit_resolver(  # pyright: ignore[reportUnknownMemberType] -- untyped
    "tag:yaml.org,2002:bool", re.compile(r"[yYnN]$"), list("yYnN")
)


def decoded_yaml(text: str) -> list[KubeObject]:
    """The documents in `text` that are not empty. Raises yaml.YAMLError."""
    documents: Any = yaml.load_all(text, Loader=_GoLoader)
    return [each for each in documents if each]
