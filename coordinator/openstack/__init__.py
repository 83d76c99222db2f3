"""The OpenStack cloud of a deployment, for the coordinator: records, checks, leftovers."""
