"""Commands that compare runs, or move them to an archive and back."""
