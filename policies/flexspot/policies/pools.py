"""Pools indexed by the possible labels of their nodes, so that rules compare few of many pools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from flexspot.policies.inventory.node_offer import NodeOffer, karpenter_key, karpenters
from flexspot.policies.inventory.views import GpuPool, Inventory, Pool
from flexspot.policies.values.field import UNKNOWN, Field

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from flexspot.capacity.values.verdict import ObjectIdentity


PoolT = TypeVar("PoolT", bound=Pool)


def pools_for(kind: type[PoolT], wanted: Mapping[str, Field], inventory: Inventory) -> list[PoolT]:
    """Return the pools whose nodes may carry each of these labels, taken one by one.

    `offer.carries(wanted)` is False for every pool that is left out. Callers must still check the pools that are returned.
    """
    return index_of(kind, inventory).candidates(wanted)


def index_of(kind: type[PoolT], inventory: Inventory) -> PoolIndex[PoolT]:
    """Return the index of the pools of a kind."""
    return inventory.once("pools by label", kind, lambda: PoolIndex(inventory.of(kind)))


def gpu_pool_of(identity: ObjectIdentity, inventory: Inventory) -> GpuPool | None:
    """Return the pool that an object declares, if it has GPUs."""
    found = inventory.by("object", GpuPool, lambda each: each.identity).get(identity)
    return found[0] if found else None


class PoolIndex(Generic[PoolT]):
    """Pools by the possible values of their nodes' labels. A label is indexed on first use."""

    def __init__(self, pools: Sequence[PoolT]) -> None:
        self._pools = pools
        self._of_key: dict[str, tuple[dict[str | None, list[int]], list[int]]] = {}

    def candidates(self, wanted: Mapping[str, Field]) -> list[PoolT]:
        """Return the pools that none of the labels rules out by itself, in their order."""
        return self.among([self.places(key, [value]) for key, value in wanted.items()])

    def among(self, several: Iterable[list[list[int]] | None]) -> list[PoolT]:
        """Return the pools of the shortest of several lists of places, or all pools without a list."""
        bounded = [lists for lists in several if lists is not None]
        if not bounded:
            return list(self._pools)
        shortest = min(bounded, key=lambda lists: sum(map(len, lists)))
        return [self._pools[place] for place in sorted({place for each in shortest for place in each})]

    def places(self, key: str, values: Iterable[Field]) -> list[list[int]] | None:
        """Return the indexes of the pools whose nodes may have one of these label values, as lists to concatenate. None if any pool may."""
        texts = [value.text() for value in values]
        if UNKNOWN in texts:
            return None
        by_value, open_to_any = self._index(key)
        return [*(by_value.get(text, []) for text in texts if text is not UNKNOWN), open_to_any]

    def _index(self, key: str) -> tuple[dict[str | None, list[int]], list[int]]:
        if key not in self._of_key:
            by_value: dict[str | None, list[int]] = {}
            open_to_any: list[int] = []
            for place, pool in enumerate(self._pools):
                possible = _possible_values(pool.offer, key)
                for value in possible or ():
                    by_value.setdefault(value, []).append(place)
                if possible is None:
                    open_to_any.append(place)
            self._of_key[key] = by_value, open_to_any
        return self._of_key[key]


def _possible_values(offer: NodeOffer, key: str) -> set[str | None] | None:
    """Return the possible values of a label of the offer's nodes, perhaps with some impossible ones. None if any value is possible.

    Follows NodeOffer.carries for one label. It may return more values than that function allows, never fewer.
    """
    of_key = [each for each in offer.requirements if karpenter_key(each) in {karpenters(key), None}]
    if key in offer.fixed:
        own = offer.fixed[key].text()
        return None if own is UNKNOWN else {own}
    for each in of_key:
        values = each.at("values").parts()
        texts = {value.text() for value in values.fields}
        if each.at("key").known and each.at("operator").text() == "In" and values.complete and UNKNOWN not in texts:
            return {text for text in texts if text is not UNKNOWN}
    if of_key or key.startswith(offer.open_prefixes) or not offer.complete:
        return None
    return set()
