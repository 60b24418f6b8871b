from gpu_constructs._daemonset import daemonset
from schemas import schema_errors

SELECTOR = {"app.kubernetes.io/name": "agent"}
METADATA = {"name": "agent", "namespace": "gpu", "labels": {**SELECTOR, "app.kubernetes.io/version": "1.0.0"}}
POD = {"containers": [{"name": "agent", "image": "a:1"}]}


def made(**more):
    given = {"metadata": METADATA, "selector": SELECTOR, "annotations": {"sum": "0"}, "pod_spec": POD}
    return daemonset(**{**given, **more})


def test_a_daemonset_is_written_as_kubernetes_does():
    assert made(rolling_update={"maxUnavailable": "10%"}) == {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": METADATA,
        "spec": {
            "selector": {"matchLabels": SELECTOR},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
            "template": {
                "metadata": {"labels": METADATA["labels"], "annotations": {"sum": "0"}},
                "spec": POD,
            },
        },
    }


def test_kubernetes_takes_it():
    assert schema_errors(made(rolling_update={"maxUnavailable": 1})) == []


def test_the_pods_carry_every_label_of_the_object_and_the_selector_fewer():
    spec = made()["spec"]
    assert spec["template"]["metadata"]["labels"] == METADATA["labels"]
    assert spec["selector"]["matchLabels"] == SELECTOR


def test_checksums_are_annotations_of_the_pods_and_not_of_the_object():
    manifest = made(annotations={"gpu-constructs/config-sha256": "0" * 64})
    assert manifest["spec"]["template"]["metadata"]["annotations"] == {"gpu-constructs/config-sha256": "0" * 64}
    assert "annotations" not in manifest["metadata"]


def test_how_an_update_rolls_is_left_to_kubernetes_unless_told():
    assert made()["spec"]["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": None}


def test_labels_of_object_selector_and_pods_are_lists_of_their_own():
    manifest = made()
    manifest["spec"]["template"]["metadata"]["labels"]["more"] = "x"
    manifest["spec"]["selector"]["matchLabels"]["more"] = "x"
    assert "more" not in METADATA["labels"]
    assert "more" not in SELECTOR


def test_a_whole_update_strategy_takes_the_place_of_the_numbers():
    manifest = made(update_strategy={"type": "OnDelete"})
    assert manifest["spec"]["updateStrategy"] == {"type": "OnDelete"}
    assert schema_errors(manifest) == []


def test_pods_without_annotations_say_nothing_of_them():
    assert made(annotations={})["spec"]["template"]["metadata"]["annotations"] is None
