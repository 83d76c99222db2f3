"""`make truth`: causes and values that are known beforehand, beside what the product prints."""
