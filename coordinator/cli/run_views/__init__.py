"""What commands show of one run: how far it is, its iterations, its errors, its logs."""
