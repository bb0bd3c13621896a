"""A stand-in for the provisioner of GKE's queued capacity (DWS): it answers Kueue's ProvisioningRequests as it is told to."""
