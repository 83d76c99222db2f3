"""HTTP of a virtual user: its session, what it expects of answers, and what it makes of them."""
