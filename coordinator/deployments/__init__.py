"""Deployment records on disk, and checks of the deployments that they describe."""
