"""HTTP requests of a workload: phases, connections, bytes and clients."""
