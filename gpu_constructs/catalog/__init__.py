"""Facts with sources: releases, platforms, GPU boards, MIG profiles, and the nodes of a cluster."""
