"""Projects of users, for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def project(folder: Path, written: str = "runtime: python\n", *, name: str = "acme") -> Path:
    """Create `folder` with a Pulumi.yaml that has a name and the text `written`, and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "Pulumi.yaml").write_text(f"name: {name}\n{written}")
    return folder
