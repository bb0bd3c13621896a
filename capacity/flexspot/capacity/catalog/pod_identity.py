"""Who the processes of pods are, and whose the files of mounts: the two must agree, or nothing can be written."""

from __future__ import annotations

POD_USER = 1000
"""The user id of processes, and the owner of mounts, unless a request or a volume says another."""

MOUNT_GROUP = 1000
"""The group id of every pod's processes, whatever their user, and of mounts, which their group may write."""

USER_NAME = "flexspot"
"""What programs are told that they are called: an id without an entry in the image's /etc/passwd has none, and getpass.getuser() fails."""
