"""Imports plug-in files, and the modules that they import from their own folders."""
