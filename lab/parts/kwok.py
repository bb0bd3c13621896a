"""KWOK: plays the kubelets of the fake nodes, and the life of the pods on them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lab.kubeconfig import kubeconfig
from lab.part import Part
from lab.tools.families import family_named

if TYPE_CHECKING:
    from lab.part import LabContext

_OWN_STAGES = Path(__file__).parents[1] / "stages"

# Karpenter marks the nodes that it makes for KWOK with this label.
_FAKE_NODES = "kwok.x-k8s.io/node=fake"


def kwok(lab: LabContext) -> Part:
    """KWOK over the fake nodes.

    A Job's pod runs as long as its annotation `pod-complete.stage.kwok.x-k8s.io/delay` says (a Go duration, with
    `.../jitter-delay` as the upper bound of a random choice; set both alike), 1 to 6 s without it. How a deleted pod ends
    is in lab/stages.
    """
    settings = lab.home.settings("kwok")
    own_kubeconfig = settings / "kubeconfig"
    stages = [path.read_text(encoding="utf-8") for path in (*lab.tools.assets("kwok", "stages"), *sorted(_OWN_STAGES.iterdir()))]
    return Part(
        name="kwok",
        version=family_named("kwok").version,
        ports=("kwok",),
        probe=f"http://127.0.0.1:{lab.ports['kwok']}/readyz",
        files={own_kubeconfig: kubeconfig(lab, "admin"), settings / "stages.yaml": "\n---\n".join(stages)},
        command=[
            str(lab.tools.binary("kwok")),
            f"--kubeconfig={own_kubeconfig}",
            f"--config={settings / 'stages.yaml'}",
            f"--manage-nodes-with-label-selector={_FAKE_NODES}",
            f"--server-address=127.0.0.1:{lab.ports['kwok']}",
            "--node-ip=127.0.0.1",
            # KWOK takes a new identity at each start and waits for the leases of the one before to run out.
            "--node-lease-duration-seconds=15",
        ],
    )
