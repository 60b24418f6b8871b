"""The kubectl commands of the tutorial, run in its order on the folder that its other commands make."""

import documented
import example_clusters as examples
import tutorial


def test_the_last_step_works_as_written(cluster, kubelets, tmp_path):
    tutorial.played(tmp_path, install=False)
    project = tmp_path / tutorial.PROJECT
    kubelets.register(*examples.nodes_in(project / "dist" / "reports"))
    commands = [line for line in documented.lines(tutorial.PAGE) if line.verb not in documented.NEEDS_A_CONTAINER]
    assert [line.verb for line in commands] == ["apply", "apply", "wait", "get", "rollout", "get", "delete"]
    for line in commands:
        answer = cluster.shell(line.text, project)
        assert (answer.status, answer.stderr) == (0, ""), line
        assert answer.stdout.strip()
        assert "custom-columns" not in line.text or ["gpu-node", "4"] in [row.split() for row in answer.lines]
