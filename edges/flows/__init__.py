"""Flows of browsers and clusters: steps at once, connections that end, local source addresses."""
