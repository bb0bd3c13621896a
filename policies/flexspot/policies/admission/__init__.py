"""Rules that can judge a single object, as ValidatingAdmissionPolicies of the API server: CEL that corresponds to the rules in Python."""
