"""The live view and the list of runs in a browser: reads run directories, never a run's objects.

Runs that it starts are commands in separate processes.
"""
