"""Work on the platform's capacity, each kind right for its class by construction: the objects that flexspot.capacity.workloads derives."""
