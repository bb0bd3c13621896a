"""The entry of the directory pack: `--policy-pack policies`."""

from flexspot.policies.engine import serve

serve()
