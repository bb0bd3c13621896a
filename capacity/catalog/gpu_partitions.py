"""Which MIG partitions GKE takes of a GPU, as data with a source."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from capacity.catalog.data_files import Record, Source, read_records
from capacity.values.names import MIG_PARTITION

_FILE = Path(__file__).parent / "gpu_partitions.yaml"


class _PartitionFile(Record):
    source: Source
    partitions: dict[str, dict[Annotated[str, Field(pattern=MIG_PARTITION)], Annotated[int, Field(ge=1, le=7)]]]


def partitions_of(accelerator: str) -> dict[str, int]:
    """The sizes into which every GPU of a node may be divided, each with how many there are; none where the GPU cannot be divided."""
    return _file().partitions.get(accelerator, {})


@cache
def _file() -> _PartitionFile:
    return read_records(_FILE, _PartitionFile)
