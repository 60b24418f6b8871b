import re

import refusals
from gpu_constructs import Unverified
from gpu_constructs.catalog import versions
from gpu_constructs.catalog.versions import DCGM_EXPORTER, DEVICE_PLUGIN, release_of
from schemas import SUPPORTED_RELEASES

RELEASES = [*DEVICE_PLUGIN.values(), *DCGM_EXPORTER.values()]
RELEASES += [release.node_feature_discovery for release in DEVICE_PLUGIN.values()]


def refusal(known, version, what="the device plugin"):
    return refusals.refusal(release_of, known, version, what)


def test_each_release_runs_an_image_whose_tag_names_it_and_says_where_that_was_read():
    for release in RELEASES:
        _, _, tag = release.image.rpartition(":")
        assert release.version in tag, release
        assert re.match(r"[A-Za-z-]+/[A-Za-z0-9-]+@v?\d", release.source), release


def test_the_kubernetes_releases_are_those_whose_schemas_manifests_are_checked_with():
    assert versions.KUBERNETES_RELEASES == SUPPORTED_RELEASES


def test_a_release_older_than_any_is_refused_with_the_way_up():
    assert refusal(DEVICE_PLUGIN, "0.15.0") == (
        "version of the device plugin must be one of '0.18.2', '0.19.3', '0.20.0'; got '0.15.0'; "
        "it is older than anything supported: move up to '0.18.2' or later"
    )


def test_a_release_with_a_trap_is_refused_with_the_trap():
    for version in ["0.19.0", "v0.19.1", "0.19.2"]:
        trap = "; it hands GDS, GDRCopy and MOFED devices to every container (NVIDIA/k8s-device-plugin#1692); force"
        assert trap in refusal(DEVICE_PLUGIN, version), version


def test_a_release_we_do_not_know_is_refused_with_the_way_to_force_it_like_one_of_its_line_or_the_newest():
    for version, like in [("0.19.4", "0.19.3"), ("0.21.0", "0.20.0"), ("1.0.0", "0.20.0"), ("0.18.10", "0.18.2")]:
        assert refusal(DEVICE_PLUGIN, version) == (
            f"version of the device plugin must be one of '0.18.2', '0.19.3', '0.20.0'; got {version!r}; "
            f"force it with Unverified({version!r}, like={like!r})"
        )


def test_a_known_release_with_the_v_of_its_tag_gets_its_own_spelling(rows):
    for known, version, bare in rows:
        listed = ", ".join(map(repr, known))
        assert (
            refusal(known, version, "it")
            == f"version of it must be one of {listed}; got {version!r} (did you mean {bare!r}?)"
        )


def test_what_is_no_version_is_neither_old_nor_to_be_forced(rows):
    for version, meant in rows:
        assert refusal(DEVICE_PLUGIN, version) == (
            f"version of the device plugin must be one of '0.18.2', '0.19.3', '0.20.0'; got {version!r}{meant}"
        )


def test_a_forced_release_behaves_like_the_known_one_under_its_own_tag():
    release = release_of(DEVICE_PLUGIN, Unverified("0.20.1", like="0.20.0"), "the device plugin")
    assert release.version == "0.20.1"
    assert release.image == "nvcr.io/nvidia/k8s-device-plugin:v0.20.1"
    assert release.node_feature_discovery == DEVICE_PLUGIN["0.20.0"].node_feature_discovery
    assert release.source == "not verified by this library"


def test_a_known_release_cannot_be_forced_to_behave_like_another(rows):
    for known, forced, what in rows:
        assert refusal(known, forced, what) == (
            f"version of {what} must not be Unverified for a release that this library knows; got {forced.version!r}; "
            f"pass version={forced.version!r}"
        )


def test_a_forced_release_can_bring_an_image_of_its_own():
    forced = Unverified("4.9.0", like="4.8.3", image="registry.home/dcgm-exporter:4.7.0-4.9.0")
    release = release_of(DCGM_EXPORTER, forced, "the DCGM exporter")
    assert (release.version, release.image) == ("4.9.0", "registry.home/dcgm-exporter:4.7.0-4.9.0")
    assert release.behaves_like == "4.8.3"


def test_a_forced_release_of_the_exporter_needs_an_image_since_its_tag_names_dcgm_too():
    assert refusal(DCGM_EXPORTER, Unverified("4.9.0", like="4.8.3"), "the DCGM exporter") == (
        "version.image of the DCGM exporter is required for a release we have not checked, since its tag names more "
        "than the release; got None, e.g. image='nvcr.io/nvidia/k8s/dcgm-exporter:4.6.0-4.8.3-distroless'"
    )


def test_a_forced_release_is_named_without_the_v_that_its_tag_gets():
    for version in ["v0.20.1", "v", "vnext"]:
        assert (
            refusals.refusal(Unverified, version, like="0.20.0")
            == f"version must be a release like '0.20.1', without a 'v'; got {version!r}"
        )


def test_a_forced_release_like_an_unknown_one_is_refused_by_that_field_and_not_told_to_force_it(rows):
    for like, way_out in rows:
        assert refusal(DEVICE_PLUGIN, Unverified("0.20.1", like=like)) == (
            f"version.like of the device plugin must be one of '0.18.2', '0.19.3', '0.20.0'; got {like!r}{way_out}"
        )


def test_releases_of_node_feature_discovery_are_compared_as_numbers(rows):
    for version, is_newer in rows:
        assert DEVICE_PLUGIN["0.18.2"].node_feature_discovery.is_at_least(version) is is_newer, (version, is_newer)


def test_what_a_later_node_feature_discovery_brought_is_refused_by_its_name():
    old, _, new = (release.node_feature_discovery for release in DEVICE_PLUGIN.values())
    new.require("worker.owner_refs", "0.19.0")
    assert refusals.refusal(old.require, "worker.owner_refs", "0.19.0") == (
        "worker.owner_refs needs Node Feature Discovery 0.19.0, and this is 0.17.3; leave it out or take a later "
        "release of the device plugin"
    )
