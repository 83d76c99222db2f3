"""Reports in Rally's JSON form."""
