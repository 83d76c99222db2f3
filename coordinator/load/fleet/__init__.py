"""The worker processes that exist (the fleet), the workers that a run takes, and the state of
each.
"""
