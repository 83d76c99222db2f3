"""The stack that sets up contexts and undoes them, and a context for tests."""
