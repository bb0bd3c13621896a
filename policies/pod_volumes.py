"""What a pod's containers mount, and whether it outlives the pod."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from policies.field import Field
from policies.unknown import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policies.unknown import Unknown

_GO_WITH_THE_POD = ("emptyDir", "ephemeral")
_GO_WITH_THE_NODE = ("hostPath",)


@dataclass(frozen=True)
class Mount:
    """One volume in one container. `volume` is the pod's entry of that name, absent where the pod's own list has none.

    A StatefulSet's claim templates make volumes that no pod lists; those outlive pods.
    """

    path: Field
    name: str
    volume: Field

    @property
    def ephemeral(self) -> str | Unknown:
        """The sort of volume, such as emptyDir, where it ends with the pod or with the node; empty where it outlives both."""
        if not self.volume.known:
            return UNKNOWN
        sources = [key for key, _ in self.volume.parts().named if key != "name"]
        # Kubernetes makes a volume of no sort an emptyDir.
        if not self.volume.absent and not sources:
            return "emptyDir"
        return next((each for each in sources if each in (*_GO_WITH_THE_POD, *_GO_WITH_THE_NODE)), "")


def mounts_of(pod: Field, container: Field) -> Iterator[Mount]:
    """The mounts of one container of `pod`."""
    listed = pod.at("volumes")
    volumes = {each.at("name").text(): each for each in listed.parts().fields}
    for mount in container.at("volumeMounts").parts().fields:
        name = mount.at("name").text()
        missing = Field(None) if listed.parts().complete and UNKNOWN not in volumes and name is not UNKNOWN else Field(UNKNOWN)
        yield Mount(mount.at("mountPath"), name if isinstance(name, str) else "a volume", volumes.get(name, missing))


def claims_of(pod: Field) -> Iterator[tuple[str, Field]]:
    """Place and name of every claim among a pod's volumes."""
    for place, volume in pod.at("volumes").parts().named:
        claim = volume.at("persistentVolumeClaim")
        if not claim.absent:
            yield f"volumes[{place}].persistentVolumeClaim.claimName", claim.at("claimName")
