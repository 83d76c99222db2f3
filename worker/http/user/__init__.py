"""HTTP of a virtual user: its session, its responses, and the checks of responses."""
