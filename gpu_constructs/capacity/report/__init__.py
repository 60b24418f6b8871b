"""What a plan says, to read, to look at and to compute with."""
