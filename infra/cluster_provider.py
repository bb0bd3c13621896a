"""How a stack's own cluster is reached, and who wins when somebody else has changed one of its objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulumi_kubernetes import Provider

if TYPE_CHECKING:
    import pulumi


def cluster_provider(name: str, kubeconfig: pulumi.Input[str]) -> Provider:
    """The Kubernetes provider of a stack, for the cluster of `kubeconfig`: a path, or the text itself.

    - **Server-side apply**, so that the API server knows which fields are the program's, and leaves alone what controllers add.
    - **Forced.** What the program says of a field holds: a ceiling that somebody raised is taken back by the next `up` that looks at it,
      whatever they raised it with. Without force a field manager of another name stops each later `up` with a conflict; a preview conflicts
      where its `up` would not; and an atomic field with a server's default in it, such as `matchResources` of a
      ValidatingAdmissionPolicyBinding, conflicts with whoever was given that default. What the program does not set stays as it is.
    - **No upsert.** An object that is there already was made by somebody else, and a program that takes it over would delete it one day.
      Worse, with upsert a renamed resource overwrites the object and then deletes it as its own old self. What an interrupted `up` made is
      read back by its id instead, by `flexspot up`. Said in so many words, because an environment variable would set it as well.

    docs/decisions/0019-who-owns-a-field.md has the alternatives.
    """
    return Provider(
        name,
        kubeconfig=kubeconfig,
        enable_server_side_apply=True,
        enable_patch_force=True,
        upsert_existing_objects=False,
    )
