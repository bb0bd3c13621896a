"""How long pods on EC2's Spot capacity are counted on to have: the figure that the plan gives them, from the same file.

EC2 tells of an interruption two minutes ahead, and the pods hear of it after EventBridge, SQS and Karpenter have passed it on: two minutes
they do not have. How long the way takes was not measured. So plan and rules go by one careful figure, and a rule never refuses what the
plan wrote, nor lets pass what the plan would not write.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import yaml

from capacity.catalog import node_labels

# Not through capacity.catalog.capacity_type: its models take a third of a second to load, which lint would pay in every run.
_FACTS = Path(node_labels.__file__).parent / "capacity_types" / "eks.yaml"

EC2_NOTICE_SECONDS: Final[int] = yaml.load(_FACTS.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)["types"]["spot"]["notice_seconds"]
"""Seconds from SIGTERM to the end of a Spot instance."""
