"""Which iterations go to which worker and when; knows no wire."""
