"""Results of a workload, counted as blocks arrive: ledger, statistics, errors and charts."""
