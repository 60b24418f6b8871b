"""Objects that a cluster needs once, such as namespaces, priority classes, runtime classes and admission policies."""
