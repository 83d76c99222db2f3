"""Deployment records on disk and checks of what they describe."""
