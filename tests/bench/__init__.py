"""What `make bench` runs: osbench beside its peers, interleaved, on the same machine."""
