"""The search for the capacity of a service, as a rate or as users at once, and its goodput."""
