"""Stores torch.distributed.checkpoint in CheckpointWriter and CheckpointReader. Extra: `torch`.

    dcp.save(state, storage_writer=ShardWriter(writer))
    dcp.load(state, storage_reader=ShardReader(reader))

What torch writes counts once the marker exists, with the checksums of all ranks' parts. All ranks take part, in a
Checkpointer with `sharded=True`. The number of ranks may shrink between starts: torch divides the tensors again.
"""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.distributed.checkpoint import StorageReader, StorageWriter
from torch.distributed.checkpoint.planner import LoadItemType, WriteItemType
from torch.distributed.checkpoint.storage import WriteResult
from torch.futures import Future

if TYPE_CHECKING:
    import os

    from torch.distributed.checkpoint.metadata import Metadata
    from torch.distributed.checkpoint.planner import LoadPlan, LoadPlanner, SavePlan, SavePlanner

    from flexspot_runtime.contents import CheckpointReader, CheckpointWriter

_DATA = "dcp/data"
_METADATA = "dcp/metadata"
"""In the part of rank 0."""


@dataclass(frozen=True)
class _Place:
    """Location of an item, pickled in the metadata."""

    rank: int
    offset: int
    size_bytes: int


class ShardWriter(StorageWriter):
    """Writes this rank's items into one object of its part."""

    def __init__(self, writer: CheckpointWriter) -> None:
        self._writer = writer

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Do nothing: there is one instance per save."""

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:  # noqa: FBT001 -- torch's signature
        """Do nothing."""

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """Return the plan unchanged."""
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Return the plans unchanged."""
        return plans

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Write the items in order, each as torch.save writes it."""
        results: list[WriteResult] = []
        with self._writer.file(_DATA) as file:
            for item in plan.items:
                content = planner.resolve_data(item)
                offset = file.tell()
                if item.type == WriteItemType.BYTE_IO:
                    assert isinstance(content, io.BytesIO)  # noqa: S101 -- torch's promise
                    file.write(content.getbuffer())
                else:
                    # A view would be saved with its whole storage.
                    torch.save(content.detach().cpu().clone(), file)
                size = file.tell() - offset
                results.append(WriteResult(item.index, size, _Place(self._writer.rank, offset, size)))
        written: Future[list[WriteResult]] = Future()
        written.set_result(results)
        return written

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Write the metadata with each item's location, in rank 0."""
        metadata.storage_data = {each.index: each.storage_data for part in results for each in part}
        self._writer.put(_METADATA, pickle.dumps(metadata))

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Return False: there is no identifier, because an instance belongs to one save."""
        del checkpoint_id
        return False


class ShardReader(StorageReader):
    """Reads items from the parts of all ranks. A rank's own part is verified or in memory; the others are verified when read."""

    def __init__(self, reader: CheckpointReader) -> None:
        self._reader = reader
        self._places: dict[Any, _Place] = {}

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Do nothing: there is one instance per load."""

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """Return the metadata that rank 0 has written."""
        del args, kwargs
        return pickle.loads(self._reader.of_rank(0).get(_METADATA))  # noqa: S301 -- written by the same job, and verified

    def set_up_storage_reader(
        self,
        metadata: Metadata,
        is_coordinator: bool,  # noqa: FBT001 -- torch's signature
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """Remember the items' locations."""
        del is_coordinator, args, kwargs
        self._places = dict(metadata.storage_data or {})

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """Return the plan unchanged."""
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """Return the plans unchanged."""
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Read this rank's items. Opens each part that contains some of them once."""
        for rank in sorted({self._places[item.storage_index].rank for item in plan.items}):
            with self._reader.of_rank(rank).file(_DATA) as file:
                for item in plan.items:
                    place = self._places[item.storage_index]
                    if place.rank != rank:
                        continue
                    file.seek(place.offset)
                    content = io.BytesIO(file.read(place.size_bytes))
                    if item.type == LoadItemType.BYTE_IO:
                        planner.load_bytes(item, content)
                        continue
                    tensor = torch.load(content, map_location="cpu", weights_only=True)
                    for dimension, (start, length) in enumerate(zip(item.storage_offsets, item.lengths, strict=True)):
                        tensor = tensor.narrow(dimension, start, length)
                    target = planner.resolve_tensor(item).detach()
                    target.copy_(tensor)
                    planner.commit_tensor(item, target)
        done: Future[None] = Future()
        done.set_result(None)
        return done

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Return False: there is no identifier, because an instance belongs to one load."""
        del checkpoint_id
        return False
