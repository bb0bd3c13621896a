"""Projects of a person's own, for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def project(folder: Path, written: str = "runtime: python\n", *, name: str = "acme") -> Path:
    """`folder`, made where it is not there, with a Pulumi.yaml of a name that says what is `written`, too."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "Pulumi.yaml").write_text(f"name: {name}\n{written}")
    return folder
