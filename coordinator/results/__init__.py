"""Results of a workload, folded as they arrive: ledger, statistics, errors and charts."""
