import pytest

from gpu_constructs import GpuConstructsError
from gpu_constructs.mig_profiles import mig_resource, require_mig_profile


@pytest.mark.parametrize(
    "profile", ["1g.5gb", "1g.10gb", "2g.20gb", "3g.40gb", "7g.80gb", "1g.10gb+me", "1g.24gb-me", "4g.96gb+gfx"]
)
def test_a_profile_of_a_board_is_taken(profile):
    require_mig_profile("field", profile)


@pytest.mark.parametrize(
    "profile", ["", "1g", "10gb", "1g.11gb", "8g.10gb", "1g.10gb+mee", "1g.10gb+", "1G.10GB", "1g.10gb\n"]
)
def test_what_no_board_is_divided_into_is_refused(profile):
    with pytest.raises(GpuConstructsError) as refused:
        require_mig_profile("request.mig_profile", profile)
    assert str(refused.value).startswith(
        f"request.mig_profile must be a MIG profile of a board, like '1g.10gb' or '1g.10gb+me'; got {profile!r}"
    )


def test_a_slip_gets_the_nearest_profile():
    with pytest.raises(GpuConstructsError, match=r"got '7g\.81gb' \(did you mean '7g\.80gb'\?\)$"):
        require_mig_profile("profile", "7g.81gb")


@pytest.mark.parametrize(
    ("profile", "resource"),
    [
        ("1g.10gb", "nvidia.com/mig-1g.10gb"),
        ("1g.10gb+me", "nvidia.com/mig-1g.10gb.me"),
        ("1g.24gb-me", "nvidia.com/mig-1g.24gb-me"),
        ("1g.24gb+me.all", "nvidia.com/mig-1g.24gb.me.all"),
    ],
)
def test_a_resource_has_a_dot_where_the_profile_has_a_plus(profile, resource):
    assert mig_resource(profile) == resource
