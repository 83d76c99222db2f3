"""Texts: control characters, paths without ids, syntax trees, pages of services under test."""
