from gpu_constructs._labels import object_labels, selector_labels

SELECTOR = {
    "app.kubernetes.io/name": "dcgm-exporter",
    "app.kubernetes.io/instance": "metrics",
    "app.kubernetes.io/component": "exporter",
}


def test_pods_are_told_apart_by_name_instance_and_component_under_the_recommended_keys():
    assert selector_labels(name="dcgm-exporter", instance="metrics", component="exporter") == SELECTOR


def test_an_object_carries_its_selector_and_who_wrote_it():
    assert object_labels(SELECTOR) == {**SELECTOR, "app.kubernetes.io/managed-by": "cdk8s"}


def test_a_release_is_a_label_of_the_object_and_never_of_the_selector():
    selector = dict(SELECTOR)
    assert object_labels(selector, version="4.8.3") == {
        **SELECTOR,
        "app.kubernetes.io/version": "4.8.3",
        "app.kubernetes.io/managed-by": "cdk8s",
    }
    assert selector == SELECTOR
