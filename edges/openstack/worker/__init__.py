"""Sessions with the cloud under test and the users that iterations act as."""
