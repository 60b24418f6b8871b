import re

import pytest

from gpu_constructs import GpuConstructsError, Unverified, versions
from gpu_constructs.versions import DCGM_EXPORTER, DEVICE_PLUGIN, release_of
from schemas import SUPPORTED_RELEASES

RELEASES = [*DEVICE_PLUGIN.values(), *DCGM_EXPORTER.values()]
RELEASES += [release.node_feature_discovery for release in DEVICE_PLUGIN.values()]


def refusal(known, version, what="the device plugin"):
    with pytest.raises(GpuConstructsError) as refused:
        release_of(known, version, what)
    return str(refused.value)


@pytest.mark.parametrize("table", [DEVICE_PLUGIN, DCGM_EXPORTER])
def test_each_release_is_found_by_its_own_version(table):
    for version, release in table.items():
        assert release.version == version
        assert release_of(table, version, "it") is release


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.image)
def test_each_release_runs_an_image_whose_tag_names_it_and_says_where_that_was_read(release):
    _, _, tag = release.image.rpartition(":")
    assert release.version in tag
    assert re.match(r"[A-Za-z-]+/[A-Za-z0-9-]+@v?\d", release.source)


def test_the_defaults_are_releases_of_the_tables():
    assert versions.DEFAULT_DEVICE_PLUGIN == "0.20.0"
    assert versions.DEFAULT_DEVICE_PLUGIN in DEVICE_PLUGIN
    assert versions.DEFAULT_DCGM_EXPORTER == "4.8.3"
    assert DCGM_EXPORTER["4.8.3"].image.endswith(":4.6.0-4.8.3-distroless")
    assert "3.4.2" in DCGM_EXPORTER


def test_the_kubernetes_releases_are_those_whose_schemas_manifests_are_checked_with():
    assert versions.KUBERNETES_RELEASES == SUPPORTED_RELEASES


def test_a_release_older_than_any_is_refused_with_the_way_up():
    assert refusal(DEVICE_PLUGIN, "0.15.0") == (
        "version of the device plugin must be one of '0.18.2', '0.19.3', '0.20.0'; got '0.15.0'; "
        "it is older than anything supported: move up to '0.18.2' or later"
    )


@pytest.mark.parametrize("version", ["0.19.0", "v0.19.1", "0.19.2"])
def test_a_release_with_a_trap_is_refused_with_the_trap(version):
    trap = (
        "; it hands GDS, GDRCopy and MOFED devices to every container (NVIDIA/k8s-device-plugin#1692); force it with "
    )
    assert trap in refusal(DEVICE_PLUGIN, version)


@pytest.mark.parametrize(
    ("version", "like"), [("0.19.4", "0.19.3"), ("0.21.0", "0.20.0"), ("1.0.0", "0.20.0"), ("0.18.10", "0.18.2")]
)
def test_a_release_we_do_not_know_is_refused_with_the_way_to_force_it_like_one_of_its_line_or_the_newest(version, like):
    assert refusal(DEVICE_PLUGIN, version) == (
        f"version of the device plugin must be one of '0.18.2', '0.19.3', '0.20.0'; got {version!r}; "
        f"force it with Unverified({version!r}, like={like!r})"
    )


@pytest.mark.parametrize(
    ("known", "version", "bare"),
    [
        (DEVICE_PLUGIN, "v0.18.2", "0.18.2"),
        (DEVICE_PLUGIN, "v0.20.0", "0.20.0"),
        (DCGM_EXPORTER, "v4.8.3", "4.8.3"),
    ],
)
def test_a_known_release_with_the_v_of_its_tag_gets_its_own_spelling(known, version, bare):
    listed = ", ".join(map(repr, known))
    assert (
        refusal(known, version, "it")
        == f"version of it must be one of {listed}; got {version!r} (did you mean {bare!r}?)"
    )


def test_an_unknown_release_with_a_v_is_forced_without_it():
    assert refusal(DEVICE_PLUGIN, "v0.20.1").endswith(
        "; got 'v0.20.1'; force it with Unverified('0.20.1', like='0.20.0')"
    )


def test_an_old_release_with_a_v_is_as_old_as_without_it():
    assert refusal(DEVICE_PLUGIN, "v0.15.0").endswith(
        "; got 'v0.15.0'; it is older than anything supported: move up to '0.18.2' or later"
    )


@pytest.mark.parametrize(
    ("version", "meant"),
    [
        ("latest", ""),
        ("", ""),
        ("0", ""),
        ("main", ""),
        ("vv0.20.0", " (did you mean '0.20.0'?)"),
        ("0.20.x", " (did you mean '0.20.0'?)"),
        ("0.20.0-rc.1", " (did you mean '0.20.0'?)"),
        ("0.18.2\n", " (did you mean '0.18.2'?)"),
    ],
)
def test_what_is_no_version_is_neither_old_nor_to_be_forced(version, meant):
    assert refusal(DEVICE_PLUGIN, version) == (
        f"version of the device plugin must be one of '0.18.2', '0.19.3', '0.20.0'; got {version!r}{meant}"
    )


def test_a_release_of_the_exporter_is_refused_by_the_exporters_name():
    assert refusal(DCGM_EXPORTER, "3.1.0", "the DCGM exporter") == (
        "version of the DCGM exporter must be one of '3.4.2', '4.8.2', '4.8.3'; got '3.1.0'; "
        "it is older than anything supported: move up to '3.4.2' or later"
    )


def test_a_forced_release_behaves_like_the_known_one_under_its_own_tag():
    release = release_of(DEVICE_PLUGIN, Unverified("0.20.1", like="0.20.0"), "the device plugin")
    assert release.version == "0.20.1"
    assert release.image == "nvcr.io/nvidia/k8s-device-plugin:v0.20.1"
    assert release.node_feature_discovery == DEVICE_PLUGIN["0.20.0"].node_feature_discovery
    assert release.source == "not verified by this library"


@pytest.mark.parametrize(
    ("known", "forced", "what"),
    [
        (DEVICE_PLUGIN, Unverified("0.19.3", like="0.20.0"), "the device plugin"),
        (DEVICE_PLUGIN, Unverified("0.20.0", like="0.20.0", image="registry.home/plugin:1"), "the device plugin"),
        (DCGM_EXPORTER, Unverified("4.8.2", like="4.8.3", image="registry.home/exporter:1"), "the DCGM exporter"),
        (versions.GPU_OPERATOR, Unverified("26.3.3", like="26.7.0"), "the GPU Operator"),
    ],
)
def test_a_known_release_cannot_be_forced_to_behave_like_another(known, forced, what):
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


@pytest.mark.parametrize("version", ["v0.20.1", "v", "vnext"])
def test_a_forced_release_is_named_without_the_v_that_its_tag_gets(version):
    with pytest.raises(GpuConstructsError) as refused:
        Unverified(version, like="0.20.0")
    assert str(refused.value) == f"version must be a release like '0.20.1', without a 'v'; got {version!r}"


def test_each_release_behaves_like_itself():
    assert [release.behaves_like for release in DCGM_EXPORTER.values()] == list(DCGM_EXPORTER)


def test_forcing_leaves_the_table_as_it_was():
    release_of(DEVICE_PLUGIN, Unverified("0.20.1", like="0.20.0"), "the device plugin")
    assert DEVICE_PLUGIN["0.20.0"].image == "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"


@pytest.mark.parametrize(
    ("like", "way_out"),
    [
        ("0.19.0", ""),
        ("0.21.0", ""),
        ("v0.19.0", ""),
        ("v0.20.0", " (did you mean '0.20.0'?)"),
        ("0.20.x", " (did you mean '0.20.0'?)"),
        ("latest", ""),
        ("0.15.0", "; it is older than anything supported: move up to '0.18.2' or later"),
    ],
)
def test_a_forced_release_like_an_unknown_one_is_refused_by_that_field_and_not_told_to_force_it(like, way_out):
    assert refusal(DEVICE_PLUGIN, Unverified("0.20.1", like=like)) == (
        f"version.like of the device plugin must be one of '0.18.2', '0.19.3', '0.20.0'; got {like!r}{way_out}"
    )


FEATURES = (
    "sets_owner_references",
    "has_infinite_sleep_interval",
    "has_shared_devices_allocation_policy",
    "has_cdi_disable_hooks",
    "honours_mps_fail_requests",
    "names_mig_attributes",
    "config_manager_survives_host_pid",
)


def test_everything_that_is_asked_of_a_release_came_after_0_18_2_and_is_there_in_0_20_0():
    facts = {name for name, value in vars(DEVICE_PLUGIN["0.20.0"]).items() if isinstance(value, bool)}
    assert facts == set(FEATURES)
    assert not any(getattr(DEVICE_PLUGIN["0.18.2"], name) for name in FEATURES)
    assert all(getattr(DEVICE_PLUGIN["0.20.0"], name) for name in FEATURES)


def test_0_19_3_has_part_of_what_0_20_0_has_and_the_companion_release_of_0_18_2():
    oldest, release, newest = DEVICE_PLUGIN.values()
    assert {name for name in FEATURES if getattr(release, name)} == {
        "sets_owner_references",
        "has_infinite_sleep_interval",
    }
    assert release.node_feature_discovery is oldest.node_feature_discovery
    assert release.cdi_feature_flags == newest.cdi_feature_flags


def test_the_operator_26_3_3_runs_the_device_plugin_0_19_3():
    assert versions.GPU_OPERATOR["26.3.3"].device_plugin is DEVICE_PLUGIN["0.19.3"]


@pytest.mark.parametrize("like", ["0.18.2", "0.20.0"])
def test_a_forced_release_has_what_the_one_that_it_is_like_has(like):
    release = release_of(DEVICE_PLUGIN, Unverified("0.20.1", like=like), "the device plugin")
    assert {getattr(release, name) for name in FEATURES} == {like == "0.20.0"}


def test_no_release_we_know_hands_out_rdma_devices_unasked():
    assert set(versions.RDMA_ON_BY_DEFAULT) == {"0.19.0", "0.19.1", "0.19.2"}
    assert set(versions.RDMA_ON_BY_DEFAULT).isdisjoint(DEVICE_PLUGIN)


def test_node_feature_discovery_has_what_its_release_brought():
    old, _, new = (release.node_feature_discovery for release in DEVICE_PLUGIN.values())
    facts = [name for name, value in vars(new).items() if isinstance(value, bool)]
    assert len(facts) == 4
    for name in facts:
        assert (getattr(old, name), getattr(new, name)) == (False, True)


@pytest.mark.parametrize(
    ("version", "is_newer"), [("0.17.3", True), ("0.17.4", False), ("0.18.0", False), ("0.9.9", True), ("1.0.0", False)]
)
def test_releases_of_node_feature_discovery_are_compared_as_numbers(version, is_newer):
    assert DEVICE_PLUGIN["0.18.2"].node_feature_discovery.is_at_least(version) is is_newer


def test_what_a_later_node_feature_discovery_brought_is_refused_by_its_name():
    old, _, new = (release.node_feature_discovery for release in DEVICE_PLUGIN.values())
    new.require("worker.owner_refs", "0.19.0")
    with pytest.raises(GpuConstructsError) as refused:
        old.require("worker.owner_refs", "0.19.0")
    assert str(refused.value) == (
        "worker.owner_refs needs Node Feature Discovery 0.19.0, and this is 0.17.3; leave it out or take a later "
        "release of the device plugin"
    )
