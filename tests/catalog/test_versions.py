import re

import refusals
from gpu_constructs import Unverified
from gpu_constructs.catalog import versions
from gpu_constructs.catalog.versions import DCGM_EXPORTER, DEVICE_PLUGIN, release_of
from schemas import SUPPORTED_RELEASES

LISTED = ", ".join(map(repr, DEVICE_PLUGIN))
RELEASES = [*DEVICE_PLUGIN.values(), *DCGM_EXPORTER.values()]
RELEASES += [release.node_feature_discovery for release in DEVICE_PLUGIN.values()]


def refusal(known, version, what="the device plugin"):
    return refusals.refusal(release_of, known, version, what)


def test_each_release_has_an_image_with_its_version_and_a_source():
    for release in RELEASES:
        _, _, tag = release.image.rpartition(":")
        assert release.version in tag, release
        assert re.match(r"[A-Za-z-]+/[A-Za-z0-9-]+@v?\d", release.source), release


def test_the_kubernetes_releases_are_those_whose_schemas_manifests_are_checked_with():
    assert versions.KUBERNETES_RELEASES == SUPPORTED_RELEASES


def test_a_release_older_than_all_is_rejected_with_the_oldest_supported_one(rows):
    for version, changes in rows:
        assert refusal(DEVICE_PLUGIN, version) == (
            f"version of the device plugin must be one of {LISTED}, got {version!r}, which is older than all "
            f"supported releases. Release {changes}. Use '0.17.0' or later"
        )
    assert release_of(DEVICE_PLUGIN, "0.17.0", "the device plugin").version == "0.17.0"


def test_a_table_lists_its_releases_in_ascending_order():
    for known in (DEVICE_PLUGIN, DCGM_EXPORTER, versions.GPU_OPERATOR):
        numbers = [versions.comparable(version) for version in known]
        assert numbers == sorted(set(numbers))


def test_a_custom_build_counts_as_the_release_that_it_comes_from(rows):
    for version, release in rows:
        assert versions.comparable(version) == versions.comparable(release), version
    forced = release_of(DEVICE_PLUGIN, Unverified("0.20.1-mybuild", like="0.20.0"), "the device plugin")
    assert (forced.version, forced.image) == ("0.20.1-mybuild", "nvcr.io/nvidia/k8s-device-plugin:v0.20.1-mybuild")


def test_an_unknown_release_is_rejected_with_the_similar_release_to_force():
    for version, like in [("0.19.4", "0.19.3"), ("0.21.0", "0.20.0"), ("1.0.0", "0.20.0"), ("0.17.10", "0.17.4")]:
        assert refusal(DEVICE_PLUGIN, version) == (
            f"version of the device plugin must be one of {LISTED}, got {version!r}. "
            f"To use it anyway, pass Unverified({version!r}, like={like!r})"
        )


def test_a_known_release_with_a_leading_v_is_rejected_with_a_suggestion(rows):
    for known, version, bare in rows:
        listed = ", ".join(map(repr, known))
        assert (
            refusal(known, version, "it")
            == f"version of it must be one of {listed}, got {version!r} (did you mean {bare!r}?)"
        )


def test_a_text_that_is_not_a_version_gets_no_advice_to_force_it(rows):
    for version, meant in rows:
        assert refusal(DEVICE_PLUGIN, version) == (
            f"version of the device plugin must be one of {LISTED}, got {version!r}{meant}"
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
            f"version of {what} must be text for a supported release, got {forced.version!r}. "
            f"Pass version={forced.version!r}"
        )


def test_a_forced_release_can_have_its_own_image():
    forced = Unverified("4.9.0", like="4.8.3", image="registry.home/dcgm-exporter:4.7.0-4.9.0")
    release = release_of(DCGM_EXPORTER, forced, "the DCGM exporter")
    assert (release.version, release.image) == ("4.9.0", "registry.home/dcgm-exporter:4.7.0-4.9.0")
    assert release.behaves_like == "4.8.3"


def test_a_forced_release_of_the_exporter_needs_an_image_since_its_tag_names_dcgm_too():
    assert refusal(DCGM_EXPORTER, Unverified("4.9.0", like="4.8.3"), "the DCGM exporter") == (
        "version.image of the DCGM exporter must be an image for an unverified release, because its tag contains more "
        "than the release, got None. Pass for example image='nvcr.io/nvidia/k8s/dcgm-exporter:4.6.0-4.8.3-distroless'"
    )


def test_a_forced_release_is_rejected_with_a_leading_v():
    for version in ["v0.20.1", "v", "vnext"]:
        assert (
            refusals.refusal(Unverified, version, like="0.20.0")
            == f"version must be a release like '0.20.1', without a 'v', got {version!r}"
        )


def test_a_forced_release_like_an_unknown_one_is_rejected_by_that_field(rows):
    for like, way_out in rows:
        assert refusal(DEVICE_PLUGIN, Unverified("0.20.1", like=like)) == (
            f"version.like of the device plugin must be one of {LISTED}, got {like!r}{way_out}"
        )


def test_releases_of_node_feature_discovery_are_compared_as_numbers(rows):
    for version, is_newer in rows:
        assert DEVICE_PLUGIN["0.18.2"].node_feature_discovery.is_at_least(version) is is_newer, (version, is_newer)


def test_an_option_of_a_later_node_feature_discovery_is_rejected_by_its_name():
    old, new = (DEVICE_PLUGIN[version].node_feature_discovery for version in ("0.18.2", "0.20.0"))
    new.require("worker.owner_refs", "0.19.0")
    assert refusals.refusal(old.require, "worker.owner_refs", "0.19.0") == (
        "worker.owner_refs needs Node Feature Discovery 0.19.0, got 0.17.3. Leave it out, or use a later release of "
        "the device plugin, which contains a later Node Feature Discovery"
    )
