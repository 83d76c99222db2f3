"""What virtual users did beside their iterations, and which numbers they have."""
