"""The rules that can be told of one object, as the API server's own: ValidatingAdmissionPolicies in CEL beside the rules in Python."""
