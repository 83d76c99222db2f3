"""Which tests each command runs, and second tries of tests that fail by chance."""
