from gpu_constructs.catalog.gpu_models import GPU_MODELS
from gpu_constructs.catalog.mig_profiles import MIG_PROFILES, memory_gb, mig_resource, mig_vram_mib, require_mig_profile
from refusals import refusal


def test_a_profile_that_no_board_has_is_rejected():
    for profile in ["", "1g", "10gb", "1g.11gb", "8g.10gb", "1g.10gb+mee", "1g.10gb+", "1G.10GB", "1g.10gb\n"]:
        assert refusal(require_mig_profile, "request.mig_profile", profile).startswith(
            f"request.mig_profile must be a MIG profile of a board, like '1g.10gb' or '1g.10gb+me', got {profile!r}"
        )


def test_a_resource_has_a_dot_where_the_profile_has_a_plus(rows):
    for profile, resource in rows:
        assert mig_resource(profile) == resource, (profile, resource)


def test_a_device_has_the_measured_memory_or_that_in_its_name(rows):
    for board, profile, mib in rows:
        assert mig_vram_mib(board, profile) == mib, (board, profile, mib)


def test_devices_have_at_most_the_memory_in_their_name_and_of_their_board():
    for board, profiles in MIG_PROFILES.items():
        for profile in profiles:
            require_mig_profile("profile", profile)
            assert 0.8 * memory_gb(profile) * 1024 < mig_vram_mib(board, profile) <= memory_gb(profile) * 1024
        sizes = [mig_vram_mib(board, profile) for profile in profiles]
        assert sizes == sorted(sizes)
        assert not sizes or sizes[-1] <= (GPU_MODELS[board].vram_mib or sizes[-1])


def test_a_suggested_profile_has_the_same_slices_or_memory():
    for got, near in [("9g.1gb", None), ("8g.80gb", "7g.80gb")]:
        said = f"(did you mean '{near}'?)" if near else ""
        assert refusal(require_mig_profile, "profile", got).endswith(f"got {got!r} {said}".rstrip()), (got, near)
