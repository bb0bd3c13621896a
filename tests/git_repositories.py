"""Git for tests: with a neutral author, whatever the machine's own settings are."""

from __future__ import annotations

import subprocess
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]


def tracked(*patterns: str) -> list[Path]:
    """Return the files of the checkout that Git tracks, or would track, and that match a pattern. Default: all."""
    command = ["git", "-C", str(CHECKOUT), "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [path for name in printed.split("\0") if name and (path := CHECKOUT / name).is_file()]


def git(folder: Path, *arguments: str) -> str:
    """Return the output of a Git command in a folder. Raises CalledProcessError if it fails."""
    named = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    command = ["git", "-C", str(folder), *named, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
