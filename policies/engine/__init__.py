"""The rules inside Pulumi's engine: the policy pack. The only part of policies/ that imports Pulumi."""
