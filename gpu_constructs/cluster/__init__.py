"""What a cluster needs once: namespaces, limits, priority and runtime classes, admission policies, rules."""
