"""Seeds: named resources in a cloud that outlive runs, made once and found again by their names."""
