"""How much power GPUs may draw."""
