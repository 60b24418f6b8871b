"""Conversion of the values of Helm charts to the keywords of constructs."""
