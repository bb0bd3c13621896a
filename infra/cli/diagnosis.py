"""The words of `flexspot doctor`: purposes, the pieces that each needs, and how it stands with them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Standing(StrEnum):
    """How it stands with a piece, from good to bad; a purpose stands as the worst of its pieces."""

    HERE = "here"
    BUILT = "built when needed"
    NOT_ASKED = "not asked"
    MISSING = "missing"


@dataclass(frozen=True)
class Piece:
    """Something that a purpose needs. `said` is what was found, `remedy` the next step where it is missing."""

    name: str
    standing: Standing
    said: str
    remedy: str = ""


class Purpose(StrEnum):
    """What people do with Flexspot, from what needs least to what needs most."""

    SETTINGS = "settings"
    PREVIEW = "preview"
    LAB = "lab"
    GKE = "gke"
    EKS = "eks"

    @property
    def words(self) -> str:
        """What it is, for a heading."""
        return _WORDS[self]


_WORDS = {
    Purpose.SETTINGS: "check stacks, lint manifests, say what they cost",
    Purpose.PREVIEW: "preview without any cloud",
    Purpose.LAB: "rehearse on a control plane of one's own",
    Purpose.GKE: "deploy stacks of GKE",
    Purpose.EKS: "deploy stacks of EKS",
}


@dataclass(frozen=True)
class Diagnosis:
    """A purpose and all that it needs."""

    purpose: Purpose
    pieces: tuple[Piece, ...]

    @property
    def standing(self) -> Standing:
        """The worst of the pieces."""
        return max((each.standing for each in self.pieces), key=list(Standing).index)
