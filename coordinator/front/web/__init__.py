"""The web server with the list of runs, their reports and the live view of a running one.

It reads run directories, never a run's objects. Runs that it starts are commands in separate
processes.
"""
