"""Scenarios of OpenStack services, by the names of Rally; a base class asks as a user."""
