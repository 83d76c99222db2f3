"""What a coordinator leaves on disk for another one to go on, and how that one takes it up."""
