"""HTTP of a virtual user: its session, and its expectations and readings of responses."""
