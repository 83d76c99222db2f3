"""The side that plans, dispatches, accounts and reports."""
