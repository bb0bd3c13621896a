"""The entry of the directory pack: `--policy-pack policies`."""

from policies.engine import serve

serve()
