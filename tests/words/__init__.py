"""The word list of `make check`: wordings that readers did not understand, and better ones."""
