"""The example clusters, applied on the server with strict validation."""

import pytest

import dist
import example_clusters as examples


@pytest.mark.parametrize("name", dist.CLUSTERS)
def test_a_strict_apply_on_the_server_warns_of_nothing_and_changes_nothing_when_repeated(cluster, name):
    examples.bring_definitions(cluster, name)
    stored = []
    for _ in range(2):
        done = examples.apply_as_documented(cluster, name, "--server-side", "--validate=strict")
        assert (done.status, done.stderr) == (0, "")
        stored.append(examples.settled(cluster, name))
    assert stored[0] == stored[1]
