"""From Helm to constructs: what each value of a chart becomes."""
