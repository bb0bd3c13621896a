"""The addresses on a node that pods need: name servers, and the servers from which they get their identity in the cloud."""

from __future__ import annotations

from datetime import date
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from capacity.platform import Platform
from capacity.records import Record, Source, read_records, unsourced

_FILE = Path(__file__).parent / "cluster_endpoints.yaml"

Port = Annotated[int, Field(ge=1, le=65_535)]


class ClusterEndpoint(Record):
    """An address that no pod selector matches, with the ports on which it is asked."""

    name: str
    cidr: Annotated[str, Field(pattern=r"^169\.254\.\d+\.\d+/32$")]
    protocols: Annotated[tuple[Literal["TCP", "UDP"], ...], Field(min_length=1)]
    ports: Annotated[tuple[Port, ...], Field(min_length=1)]
    source: str


class _Endpoints(Record):
    """The data file."""

    as_of: date
    sources: dict[str, Source]
    platforms: dict[Platform, tuple[ClusterEndpoint, ...]]

    @model_validator(mode="after")
    def _complete(self) -> _Endpoints:
        rows = [(each.name, each.source) for endpoints in self.platforms.values() for each in endpoints]
        if wrong := unsourced(rows, self.sources):
            raise ValueError(wrong)
        if lacking := [each.value for each in Platform if each not in self.platforms]:
            raise ValueError(f"platforms lacks {', '.join(lacking)}")
        return self


@cache
def endpoints_of(platform: Platform) -> tuple[ClusterEndpoint, ...]:
    """The endpoints of a platform, in the order of the data file."""
    return read_records(_FILE, _Endpoints).platforms[platform]
