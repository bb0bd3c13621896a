"""What tests of workflows and actions share: who judges them, how actions are pinned, and a pool that breaks a rule. Not a test."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ACTIONLINT = Path(__file__).resolve().parents[2] / ".tools" / "bin" / "actionlint"

_PINNED = re.compile(r"[\w-]+/[\w-]+(/[\w-]+)?@[0-9a-f]{40} # v\d+\.\d+\.\d+")

UNLIMITED_POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: planted}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: planted}
      requirements: [{key: karpenter.k8s.aws/instance-family, operator: In, values: [g6]}]
"""


def used_and_unpinned(path: Path) -> tuple[int, list[str]]:
    """How many actions a file uses, and those that are not pinned by commit with their version beside it; not those of the same commit."""
    used = [line.partition("uses:")[2].strip() for line in path.read_text().splitlines() if line.lstrip("- ").startswith("uses:")]
    used = [each for each in used if not each.startswith("./")]
    return len(used), [each for each in used if not _PINNED.fullmatch(each)]


def actionlint(folder: Path) -> subprocess.CompletedProcess[str]:
    """What actionlint says of the workflows of a repository."""
    (folder / ".git").mkdir(exist_ok=True)
    return subprocess.run([ACTIONLINT, "-no-color"], cwd=folder, capture_output=True, text=True, check=False, timeout=60)
