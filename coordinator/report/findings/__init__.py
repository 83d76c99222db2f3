"""Findings on a load for its report: causes that bound it, lateness of the generator, its
course.
"""
