"""Rows of a price file that are no machine's own price: the fee of a node, and families without GPUs."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated

from pydantic import Field

from capacity.catalog.data_files import Record


class NodeFee(Record):
    """What EKS Auto Mode bills for running a node: a part, in percent, of its machine's on-demand price.

    Of machines of some categories, such as g and gr; without categories, of all that no row before it is of.
    """

    categories: tuple[str, ...] = ()
    percent: Annotated[Decimal, Field(gt=Decimal(0), lt=Decimal(100))]
    source: str

    def is_of(self, machine: str) -> bool:
        """Whether it is the fee of a machine such as g6e.xlarge."""
        category = re.match("[a-z]*", machine)
        return not self.categories or (category is not None and category[0] in self.categories)


class FamilyPrice(Record):
    """The smallest machine of a family without GPUs on demand, in US dollars an hour; larger ones cost no more for what they have.

    An autoscaler may make any size of these families for work without GPUs, and no other families.
    """

    family: str
    region: str
    vcpu: Annotated[int, Field(ge=1)]
    memory_gib: Annotated[int, Field(ge=1)]
    usd_per_hour: Annotated[Decimal, Field(gt=Decimal(0))]
    source: str
