"""Deployment records (of the systems under test) on disk, and checks of the deployments."""
