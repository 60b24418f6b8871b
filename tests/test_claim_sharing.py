import pytest

from gpu_constructs import GpuConstructsError
from gpu_constructs.workload.claim_sharing import FEATURE_GATES, ClaimSharing


def parameters(sharing, *, of_mig_devices=False):
    opaque = sharing.to_manifest(of_mig_devices=of_mig_devices)["opaque"]
    assert opaque["driver"] == "gpu.nvidia.com"
    assert opaque["parameters"].pop("apiVersion") == "resource.nvidia.com/v1beta1"
    return opaque["parameters"]


@pytest.mark.parametrize(
    ("sharing", "of_mig_devices", "expected"),
    [
        (
            ClaimSharing.time_slicing(),
            False,
            # The driver reads an interval that is not there as a broken one.
            {"kind": "GpuConfig", "sharing": {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Default"}}},
        ),
        (
            ClaimSharing.time_slicing("Long"),
            False,
            {"kind": "GpuConfig", "sharing": {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Long"}}},
        ),
        (ClaimSharing.time_slicing(), True, {"kind": "MigDeviceConfig", "sharing": {"strategy": "TimeSlicing"}}),
        (
            ClaimSharing.mps(
                default_active_thread_percentage=50,
                default_pinned_device_memory_limit="8Gi",
                default_per_device_pinned_memory_limit={"0": "4Gi"},
            ),
            False,
            {
                "kind": "GpuConfig",
                "sharing": {
                    "strategy": "MPS",
                    "mpsConfig": {
                        "defaultActiveThreadPercentage": 50,
                        "defaultPinnedDeviceMemoryLimit": "8Gi",
                        "defaultPerDevicePinnedMemoryLimit": {"0": "4Gi"},
                    },
                },
            },
        ),
    ],
    ids=["default", "long", "mig", "mps"],
)
def test_the_driver_gets_its_own_structure(sharing, of_mig_devices, expected):
    assert parameters(sharing, of_mig_devices=of_mig_devices) == expected


def test_every_strategy_has_its_feature_gate():
    assert set(FEATURE_GATES) == {ClaimSharing.time_slicing().strategy, ClaimSharing.mps().strategy}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ClaimSharing(strategy="Mps"), "sharing.strategy must be one of 'TimeSlicing', 'MPS'; got 'Mps'"),
        (lambda: ClaimSharing.time_slicing("long"), "sharing.interval must be one of "),
        (
            lambda: ClaimSharing(strategy="TimeSlicing", default_pinned_device_memory_limit="8Gi"),
            "sharing.default_pinned_device_memory_limit must be left out with the strategy 'TimeSlicing'; got '8Gi'",
        ),
        (
            lambda: ClaimSharing(strategy="TimeSlicing", default_active_thread_percentage=0),
            "sharing.default_active_thread_percentage must be left out with the strategy 'TimeSlicing'; got 0",
        ),
        (
            lambda: ClaimSharing(strategy="MPS", interval="Long"),
            "sharing.interval must be left out with the strategy 'MPS'; got 'Long'",
        ),
        (
            lambda: ClaimSharing.mps(default_active_thread_percentage=101),
            "sharing.default_active_thread_percentage must be at most 100, got 101",
        ),
        (
            lambda: ClaimSharing.mps(default_active_thread_percentage=-1),
            "sharing.default_active_thread_percentage must be at least 0, got -1",
        ),
        (
            lambda: ClaimSharing.mps(default_pinned_device_memory_limit="8GB"),
            "sharing.default_pinned_device_memory_limit must be a Kubernetes quantity",
        ),
        (
            lambda: ClaimSharing.mps(default_per_device_pinned_memory_limit={"0": "1Ki"}),
            "sharing.default_per_device_pinned_memory_limit['0'] must be at least '1Mi', the unit of MPS; got '1Ki'",
        ),
        (
            lambda: ClaimSharing.time_slicing("Short").to_manifest(of_mig_devices=True),
            "sharing.interval must be left out for MIG devices, which the driver gives none; got 'Short'",
        ),
    ],
)
def test_what_the_driver_refuses_is_refused_in_one_line(make, message):
    with pytest.raises(GpuConstructsError) as refused:
        make()
    assert str(refused.value).startswith(message)
    assert len(str(refused.value).splitlines()) == 1
