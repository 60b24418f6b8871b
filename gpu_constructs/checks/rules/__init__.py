"""Rules for objects with GPUs, whoever wrote them: each has a code, a reason and a way out."""
