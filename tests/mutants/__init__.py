"""Mutants: random small changes of the product, and the layers of tests that find them."""
