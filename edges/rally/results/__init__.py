"""Rally's results: exports runs in its JSON form, and imports that form as runs."""
