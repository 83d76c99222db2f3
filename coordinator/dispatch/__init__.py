"""Dispatch: decides which iterations go to which worker and when; knows no wire."""
