"""Imports plug-in files, with the modules that they import from their own folders."""
