import pytest

from parity_fields import fields_of
from parity_values import decides, decides_path, fields_decided_by, follows

MAIN = ("pod", "containers", "[nvidia-device-plugin-ctr]")


@pytest.mark.parametrize(
    ("key", "objects", "path", "chart", "given"),
    [
        ("migStrategy", "gfd DaemonSet", ("settings", "flags", "migStrategy"), "x", "x"),
        ("nvidiaDriverRoot", "plugin DaemonSet", (*MAIN, "mounts", "[/driver-root]", "readOnly"), True, "relative"),
        ("image.tag", "mps DaemonSet", (*MAIN, "image"), "nvcr.io/nvidia/k8s-device-plugin:1.1", 1.1),
        ("image.tag", "mps DaemonSet", (*MAIN, "image"), "nvcr.io/nvidia/k8s-device-plugin:2.0250101e+07", 20250101),
        ("nodeSelector", "plugin DaemonSet", ("pod", "nodeSelector", "[gpu]"), True, {"gpu": True}),
        (
            "tolerations[0]",
            "plugin DaemonSet",
            ("pod", "tolerations", '[{"key":"a","operator":"Equal"}]'),
            True,
            [{"key": "a"}],
        ),
        ("tolerations", "plugin DaemonSet", ("pod", "tolerations"), '{"key":"a"}', {"key": "a"}),
        (
            "nfd.master.extraArgs",
            "nfd-master Deployment",
            ("pod", "containers", "[master]", "args", "[-v]"),
            "4",
            ["-v=4"],
        ),
        (
            "nfd.master.extraArgs",
            "nfd-master Deployment",
            ("pod", "containers", "[master]", "args", "[-x]"),
            "",
            ["-x"],
        ),
        ("nfd.featureGates", "nfd-worker DaemonSet", (*MAIN, "args", "[-feature-gates]"), "A=true", {"A": "true"}),
        ("securityContext", "plugin DaemonSet", (*MAIN, "securityContext", "runAsUser"), 0, {"runAsUser": 0}),
        (
            "nfd.worker.config",
            "nfd-worker ConfigMap",
            ("data", "[nfd-worker.conf]", "core", "x"),
            1,
            {"core": {"x": 1}},
        ),
        (
            "nfd.gc.initContainers",
            "nfd-gc Deployment",
            ("pod", "initContainers", "[i]", "imagePullPolicy"),
            "Always",
            [],
        ),
    ],
)
def test_a_key_decides_its_fields_with_what_it_was_given(key, objects, path, chart, given):
    assert decides(key, objects, path, chart, given)


@pytest.mark.parametrize(
    ("key", "objects", "path", "chart", "given"),
    [
        ("migStrategy", "gfd DaemonSet", ("settings", "flags", "migStrategy"), "y", "x"),
        ("migStrategy", "gfd DaemonSet", ("settings", "flags", "mpsRoot"), "x", "x"),
        ("migStrategy", "nfd-worker DaemonSet", ("settings", "flags", "migStrategy"), "x", "x"),
        ("nodeSelector", "plugin DaemonSet", ("pod", "nodeSelector", "[zone]"), "a", {"gpu": True}),
        (
            "nfd.master.extraArgs",
            "nfd-worker DaemonSet",
            ("pod", "containers", "[worker]", "args", "[-v]"),
            "4",
            ["-v=4"],
        ),
        ("securityContext", "gfd DaemonSet", (*MAIN, "securityContext", "runAsUser"), 0, {"runAsUser": 0}),
        ("unknown", "plugin DaemonSet", ("pod", "hostPID"), True, True),
    ],
)
def test_a_key_decides_nothing_else(key, objects, path, chart, given):
    assert not decides(key, objects, path, chart, given)


@pytest.mark.parametrize(
    ("key", "objects", "path", "is_decided"),
    [
        ("tolerations", "plugin DaemonSet", ("pod", "tolerations", '[{"key":"a"}]'), True),
        ("tolerations", "nfd-worker DaemonSet", ("pod", "tolerations", '[{"key":"a"}]'), False),
        ("tolerations", "plugin DaemonSet", ("pod", "hostPID"), False),
        ("typo", "plugin DaemonSet", ("pod", "tolerations", '[{"key":"a"}]'), False),
    ],
)
def test_a_key_decides_its_fields_where_the_chart_has_none(key, objects, path, is_decided):
    assert decides_path(key, objects, path) is is_decided


def test_a_key_below_another_decides_what_that_does():
    assert fields_decided_by("tolerations[3]") == fields_decided_by("tolerations")
    assert fields_decided_by("nfd.worker.securityContext.privileged") == fields_decided_by("nfd.worker.securityContext")
    assert fields_decided_by("nothing.at.all") == ()


def test_text_for_another_word_does_not_follow():
    assert follows("a", "[x]", {"x": "a"})
    assert not follows("ab", "[x]", {"x": "a"})
    assert not follows(True, "[y]", {"x": "a"})


def test_kinds_of_fields_are_those_that_manifests_have():
    pod = {
        "spec": {
            "containers": [{"name": "m", "resources": {"limits": {"cpu": 1}}}],
            "imagePullSecrets": [{"name": "s"}],
        }
    }
    manifest = {"kind": "DaemonSet", "metadata": {}, "spec": {"template": pod}}
    paths = fields_of(manifest)
    assert all(decides("resources", "plugin DaemonSet", p, "1", {"cpu": 1}) for p in paths if "resources" in p)
    assert all(decides("imagePullSecrets", "plugin DaemonSet", p, "s", ["s"]) for p in paths if "imagePullSecrets" in p)


@pytest.mark.parametrize(
    ("image", "given", "is_made_of_it"),
    [
        ("registry.k8s.io/nfd/node-feature-discovery:latest", "latest", True),
        ("evil.example/x:latest", "latest", False),
        ("mine.example/nfd:v0.19.0", "mine.example/nfd", True),
        ("mine.example/nfd:other", "mine.example/nfd", False),
    ],
)
def test_an_image_is_made_of_the_tag_or_the_repository_that_was_given_and_of_the_charts_own(
    image, given, is_made_of_it
):
    assert follows(image, "image", given) == is_made_of_it
