"""The product in a simulated world: real coordinators and workers under virtual time, from a seed.

`world.ports` is imported before any module of osbench, because that takes names at import.
"""
