"""Virtual users outside their iterations: begin and end, think times, numbers, forked children."""
