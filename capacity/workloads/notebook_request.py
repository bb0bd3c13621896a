"""What a person asks for of a notebook."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from capacity.names import HOME_FOLDER, TIME_OF_DAY, Name
from capacity.workloads.request import WorkloadRequest


class NotebookRequest(WorkloadRequest):
    """A request for a Jupyter notebook of one person. `command` starts the server; default: jupyter lab, as images of Jupyter have it.

    It ends after `idle_seconds` without work, and every night at `nightly_stop` (UTC). `home_gib` is the disk mounted at `home`, of
    `storage_class` (default: the cluster's own default class), which stays. The token by which the browser is let in is the key token of
    the Secret `token_secret` (default: the name and -token), which must be there. The image has Python 3, as every image of Jupyter has.
    """

    idle_seconds: Annotated[int, Field(ge=300, le=86_400)] = 3600
    nightly_stop: Annotated[str, Field(pattern=TIME_OF_DAY)] = "20:00"
    home: Annotated[str, Field(pattern=HOME_FOLDER)] = "/home/jovyan"
    home_gib: Annotated[int, Field(ge=1, le=16_384)] = 50
    storage_class: Name | None = None
    token_secret: Name | None = None
