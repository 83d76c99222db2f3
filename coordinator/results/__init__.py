"""Results of a workload, counted block by block as they arrive: ledger, statistics, errors,
charts.
"""
