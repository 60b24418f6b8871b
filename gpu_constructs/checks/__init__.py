"""The checks that ``synth`` runs on all objects of an app."""
