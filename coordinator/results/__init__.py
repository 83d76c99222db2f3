"""The results of a workload as they arrive: ledger, statistics, charts."""
