"""What virtual users are beside their iterations: how each begins, thinks and ends."""
