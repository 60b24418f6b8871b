import copy

import pytest
from cdk8s import ApiObject
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_constructs import GpuConstructsError, Kubernetes, Sharing, Talos, Toleration
from gpu_constructs.errors import GpuConstructsWarning
from gpu_constructs.workload.backend import Backend
from gpu_constructs.workload.gpu_allocation import ContainerMissingError, allocation, container_named, node_terms
from gpu_constructs.workload.gpu_profile import GpuProfile
from gpu_constructs.workload.gpu_request import GpuRequest
from gpu_constructs.workload.gpu_resource_claim import GpuResourceClaim

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
VOID = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}
PLAIN = GpuProfile(platform=Kubernetes())
SLICED = Sharing.time_slicing(replicas=4)
RENAMED = Sharing.time_slicing(replicas=4, rename_by_default=True)
UNITS = Sharing.vram_units(vram="16303Mi")
CLAIMS = GpuProfile(platform=Kubernetes(), backend=Backend.dra_claims())
EXTENDED = GpuProfile(platform=Talos("1.14"), backend=Backend.dra_extended_resource())
POD = {"containers": [{"name": "app"}, {"name": "other"}], "initContainers": [{"name": "first"}]}
SMALL = GpuRequest(min_vram="12Gi")


def refusal(call, kind=GpuConstructsError):
    with pytest.raises(kind) as refused:
        call()
    assert len(str(refused.value).splitlines()) == 1
    return str(refused.value)


def limits(profile=PLAIN, **wishes):
    return allocation(GpuRequest(**wishes), profile).limits


def terms(profile=PLAIN, **wishes):
    return [
        [
            f"{rule['key'].removeprefix('nvidia.com/gpu.')} {rule['operator']} {' '.join(rule['values'])}"
            for rule in term
        ]
        for term in node_terms(GpuRequest(**wishes), profile)
    ]


def given_to(pod, request=None, profile=PLAIN, **how):
    return allocation(request or GpuRequest(), profile).give(pod, **how)


# --- what is asked for ------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "wishes", "expected"),
    [
        ({}, {}, {"nvidia.com/gpu": 1}),
        ({}, {"count": 4}, {"nvidia.com/gpu": 4}),
        ({}, {"mig_profile": "1g.10gb+me", "count": 2}, {"nvidia.com/mig-1g.10gb.me": 2}),
        ({"mig_strategy": "mixed"}, {"mig_profile": "1g.10gb"}, {"nvidia.com/mig-1g.10gb": 1}),
        ({"mig_strategy": "mixed"}, {"resource": "nvidia.com/mig-1g.10gb"}, {"nvidia.com/mig-1g.10gb": 1}),
        (
            {"mig_strategy": "single"},
            {"mig_profile": "1g.10gb", "products": ["NVIDIA H100 80GB HBM3"]},
            {"nvidia.com/gpu": 1},
        ),
        ({"backend": Backend.dra_extended_resource()}, {"resource": "example.com/big"}, {"example.com/big": 1}),
        (
            {"backend": Backend.dra_extended_resource()},
            {"resource": "nvidia.com/mig-small"},
            {"nvidia.com/mig-small": 1},
        ),
        ({"sharing": UNITS}, {"vram": "8Gi"}, {"nvidia.com/gpu": 8}),
        ({"sharing": UNITS}, {"vram": "7.5Gi", "count": 1}, {"nvidia.com/gpu": 8}),
        ({"sharing": UNITS}, {"vram": "15Gi", "resource": "nvidia.com/gpu"}, {"nvidia.com/gpu": 15}),
        ({"sharing": UNITS}, {"vram": "8Gi", "products": ["NVIDIA GeForce RTX 5070 Ti"]}, {"nvidia.com/gpu": 8}),
        (
            {"sharing": Sharing.vram_units(vram="16303Mi", unit="512Mi", rename_by_default=True)},
            {"vram": "8Gi"},
            {"nvidia.com/gpu.shared": 16},
        ),
        ({"sharing": UNITS}, {"mig_profile": "1g.10gb", "count": 2}, {"nvidia.com/mig-1g.10gb": 2}),
        (
            {"sharing": UNITS, "backend": Backend.dra_extended_resource()},
            {"resource": "example.com/big"},
            {"example.com/big": 1},
        ),
        ({"sharing": SLICED}, {}, {"nvidia.com/gpu": 1}),
        ({"sharing": SLICED}, {"resource": "nvidia.com/gpu"}, {"nvidia.com/gpu": 1}),
        ({"sharing": RENAMED}, {}, {"nvidia.com/gpu.shared": 1}),
        ({"sharing": RENAMED}, {"resource": "nvidia.com/gpu.shared"}, {"nvidia.com/gpu.shared": 1}),
        ({"sharing": RENAMED}, {"mig_profile": "1g.10gb", "count": 2}, {"nvidia.com/mig-1g.10gb": 2}),
        (
            {
                "sharing": Sharing.time_slicing(resources={"nvidia.com/mig-1g.10gb": 2}, rename_by_default=True),
                "mig_strategy": "mixed",
            },
            {"mig_profile": "1g.10gb"},
            {"nvidia.com/mig-1g.10gb.shared": 1},
        ),
        (
            {"sharing": Sharing.time_slicing(replicas=4, fail_requests_greater_than_one=False)},
            {"count": 3},
            {"nvidia.com/gpu": 3},
        ),
    ],
    ids=str,
)
def test_a_request_is_a_limit_under_the_name_that_the_device_plugin_advertises(profile, wishes, expected):
    given_limits = limits(GpuProfile(platform=Kubernetes(), **profile), **wishes)
    assert given_limits == expected
    assert all(type(number) is int for number in given_limits.values())


@pytest.mark.parametrize(
    ("profile", "wishes", "message"),
    [
        (
            {"sharing": SLICED},
            {"count": 2},
            "request.count must be 1 where nvidia.com/gpu is shared with fail_requests_greater_than_one, got 2: slots "
            "are not GPUs, and several may be turns on the same one; ask for 1, or share with "
            "fail_requests_greater_than_one=False",
        ),
        (
            {"sharing": UNITS},
            {"vram": "8Gi", "count": 2},
            "request.count must be 1 where nvidia.com/gpu is shared in units of 1Gi, got 2: a pod gets the one GPU of "
            "its node, and as many units as vram says; pass GpuRequest(vram='8Gi') alone",
        ),
        (
            {"sharing": UNITS},
            {},
            "request.vram is required where nvidia.com/gpu is shared in units of 1Gi, since it says how many are asked "
            "for; pass a GpuRequest(vram='8Gi')",
        ),
        (
            {"sharing": UNITS},
            {"vram": "15.5Gi"},
            "request.vram must be at most 15 units of 1Gi, which is all that is handed out of a GPU; got '15.5Gi', "
            "which is 16; take less, or a larger GPU",
        ),
        (
            {"sharing": UNITS},
            {"vram": "8"},
            "request.vram must have a unit; got '8', which is 8 bytes; write '8Gi' or '8Mi'",
        ),
        (
            {"sharing": UNITS, "mig_strategy": "single"},
            {"vram": "8Gi"},
            "profile.mig_strategy must not be 'single' beside Sharing.vram_units, which counts one memory in each "
            "node; use 'mixed' where boards are divided",
        ),
        (
            {"sharing": UNITS, "backend": Backend.dra_extended_resource()},
            {"vram": "8Gi"},
            "profile.sharing by vram_units is the device plugin's, and a DRA driver knows no slots; got the backend "
            "'dra-extended-resource'; leave sharing out of the profile",
        ),
        (
            {"sharing": UNITS, "backend": Backend.dra_claims()},
            {"vram": "8Gi"},
            "profile.sharing 'time-slicing' is the device plugin's; under the backend 'dra-claims' ",
        ),
        ({"sharing": RENAMED}, {"count": 2}, "request.count must be 1 where nvidia.com/gpu.shared is shared with "),
        ({"sharing": Sharing.mps(replicas=4)}, {"count": 2}, "request.count must be 1 where nvidia.com/gpu is shared "),
        (
            {"sharing": RENAMED},
            {"resource": "nvidia.com/gpu"},
            "request.resource 'nvidia.com/gpu' is advertised as 'nvidia.com/gpu.shared', since sharing has "
            "rename_by_default; leave resource out",
        ),
        (
            {"sharing": SLICED},
            {"resource": "nvidia.com/gpu.shared"},
            "request.resource 'nvidia.com/gpu.shared' is advertised only by a sharing with rename_by_default; leave "
            "resource out, or ask for 'nvidia.com/gpu'",
        ),
        (
            {"mig_strategy": "none"},
            {"mig_profile": "1g.10gb"},
            "request.mig_profile '1g.10gb' needs a profile with mig_strategy 'single' or 'mixed'; got 'none', under "
            "which the device plugin advertises whole GPUs only",
        ),
        (
            {"mig_strategy": "single"},
            {"resource": "nvidia.com/mig-1g.10gb"},
            "request.resource 'nvidia.com/mig-1g.10gb' needs a profile with mig_strategy 'mixed'; got 'single', under "
            "which the device plugin advertises 'nvidia.com/gpu' only; leave resource out",
        ),
        (
            {"mig_strategy": "single"},
            {"mig_profile": "1g.10gb"},
            "request.mig_profile '1g.10gb' needs request.products under mig_strategy 'single', where 'nvidia.com/gpu' "
            "may be a device of any profile and the label of a node's board tells which; add products=['NVIDIA ",
        ),
        (
            {},
            {"resource": "nvidia.com/gpus"},
            "request.resource must be 'nvidia.com/gpu', 'nvidia.com/gpu.shared' or a MIG resource like "
            "'nvidia.com/mig-1g.10gb'; got 'nvidia.com/gpus'",
        ),
        (
            {},
            {"resource": "nvidia.com/mig-1g.11gb"},
            "request.resource must be a MIG profile of a board, like '1g.10gb' or '1g.10gb+me'; got '1g.11gb' "
            "(did you mean '1g.18gb'?)",
        ),
        *(
            (
                {"backend": Backend.dra_extended_resource()},
                wish,
                f"request.{next(iter(wish))} must be left out with the backend 'dra-extended-resource', whose devices "
                "no node label tells; make a GpuDeviceClass of that request and ask for its extended_resource_name: "
                "GpuRequest(resource=...)",
            )
            for wish in (
                {"products": ["NVIDIA L4"]},
                {"min_vram": "8Gi"},
                {"min_compute_capability": "8.0"},
                {"family": "hopper"},
            )
        ),
        (
            {},
            {"resource_claim": "gpu"},
            "request.resource_claim needs the backend 'dra-claims'; got 'device-plugin'",
        ),
        (
            {"backend": Backend.dra_claims()},
            {"resource": "nvidia.com/gpu"},
            "request.resource must be left out with the backend 'dra-claims', got 'nvidia.com/gpu'; a claim names a "
            "DeviceClass: Backend.dra_claims(device_class=...)",
        ),
        (
            {"backend": Backend.dra_claims(), "sharing": SLICED},
            {},
            "profile.sharing 'time-slicing' is the device plugin's; under the backend 'dra-claims' pods share one ",
        ),
    ],
    ids=str,
)
def test_what_the_cluster_would_refuse_is_refused_here(profile, wishes, message):
    profile = GpuProfile(platform=Kubernetes(), **profile)
    assert refusal(lambda: allocation(GpuRequest(**wishes), profile)).startswith(message)


# --- which nodes --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wishes", "expected"),
    [
        ({"min_vram": "12Gi"}, [["memory Gt 12287"]]),
        (
            {"products": ["NVIDIA GeForce RTX 5070 Ti"], "min_vram": "12Gi"},
            [
                [
                    "product In NVIDIA-GeForce-RTX-5070-Ti NVIDIA-GeForce-RTX-5070-Ti-SHARED",
                    "memory Gt 12287",
                ]
            ],
        ),
        (
            {"products": ["NVIDIA-A", "NVIDIA-A-SHARED", "NVIDIA B"]},
            [["product In NVIDIA-A NVIDIA-A-SHARED NVIDIA-B NVIDIA-B-SHARED"]],
        ),
        ({"family": ["hopper", "blackwell"]}, [["family In hopper blackwell"]]),
        ({"min_compute_capability": "9.0"}, [["compute.major Gt 8"]]),
        ({"min_compute_capability": "12.0"}, [["compute.major Gt 11"]]),
        ({"min_compute_capability": "8.9"}, [["family In ada-lovelace hopper blackwell rubin"]]),
        ({"min_compute_capability": "7.5"}, [["family In turing ampere ada-lovelace hopper blackwell rubin"]]),
        (
            {"min_compute_capability": "8.9", "family": ["turing", "hopper"], "min_vram": "1Gi"},
            [["memory Gt 1023", "family In hopper"]],
        ),
        (
            {"min_compute_capability": "8.6", "min_vram": "12Gi"},
            [
                ["memory Gt 12287", "compute.major Gt 8"],
                ["memory Gt 12287", "compute.major In 8", "compute.minor Gt 5"],
            ],
        ),
    ],
    ids=str,
)
def test_wishes_become_one_term_but_for_a_capability_amid_a_major_number(wishes, expected):
    assert terms(**wishes) == expected


def test_the_boards_of_mig_devices_have_the_profile_in_their_name_under_the_strategy_single():
    wishes = {"products": ["NVIDIA A100-SXM4-80GB"], "mig_profile": "1g.10gb+me"}
    single = GpuProfile(mig_strategy="single")
    board = "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb.me"
    assert terms(single, **wishes) == [[f"product In {board} {board}-SHARED"]]
    mixed = GpuProfile(mig_strategy="mixed")
    assert terms(mixed, **wishes) == [["product In NVIDIA-A100-SXM4-80GB NVIDIA-A100-SXM4-80GB-SHARED"]]


PRO_6000 = "NVIDIA RTX PRO 6000 Blackwell {} Edition"


def test_a_label_that_no_node_can_carry_is_not_selected():
    workstation = {"products": [PRO_6000.format("Workstation")], "mig_profile": "1g.24gb"}
    board = "NVIDIA-RTX-PRO-6000-Blackwell-Workstation-Edition-MIG-1g.24gb"
    assert terms(GpuProfile(mig_strategy="single"), **workstation) == [[f"product In {board}"]]


@pytest.mark.parametrize(
    ("edition", "mig_profile", "sharing", "label"),
    [
        ("Max-Q Workstation", "1g.24gb", None, "Max-Q-Workstation-Edition-MIG-1g.24gb' since its 67 characters"),
        (
            "Workstation",
            "1g.24gb",
            Sharing.time_slicing(replicas=2),
            "Workstation-Edition-MIG-1g.24gb-SHARED' since its 68 characters",
        ),
    ],
)
def test_a_board_whose_label_is_too_long_cannot_be_selected_by_name(edition, mig_profile, sharing, label):
    profile = GpuProfile(mig_strategy="single", sharing=sharing)
    with pytest.raises(GpuConstructsError) as refused:
        terms(profile, products=[PRO_6000.format(edition)], mig_profile=mig_profile)
    for part in label.split(" since "):
        assert part in str(refused.value)


@pytest.mark.parametrize("product", ["NVIDIA H200", "NVIDIA Unheard Of"])
def test_whole_boards_by_name_are_told_of_under_the_strategy_single(product):
    single = GpuProfile(platform=Kubernetes(), mig_strategy="single")
    with pytest.warns(GpuConstructsWarning, match=r"<board>-MIG-<profile>; add mig_profile") as told:
        made = terms(single, products=["NVIDIA L4", product])
    assert len(told) == 1
    assert made == terms(products=["NVIDIA L4", product])


@pytest.mark.parametrize("product", ["NVIDIA GeForce RTX 4090", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"])
def test_boards_without_mig_and_labels_with_a_profile_are_nothing_to_tell_of(product):
    terms(GpuProfile(mig_strategy="single"), products=[product])


@pytest.mark.parametrize(
    ("claim", "namespace"),
    [
        (lambda chart: "shared", None),
        (lambda chart: GpuResourceClaim(chart, "shared", profile=CLAIMS, namespace="b"), "b"),
        (
            lambda chart: ApiObject(
                chart, "raw", api_version="resource.k8s.io/v1", kind="ResourceClaim", metadata={"namespace": "c"}
            ),
            "c",
        ),
    ],
)
def test_a_claim_given_as_an_object_keeps_its_namespace(chart, claim, namespace):
    made = allocation(GpuRequest(resource_claim=claim(chart)), CLAIMS)
    assert made.existing_claim is not None
    assert made.existing_claim_namespace == namespace


def test_alternatives_of_the_user_are_each_narrowed():
    mine = [{"matchExpressions": [{"key": key, "operator": "Exists"}]} for key in "ab"]
    pod = {**POD, "affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": mine}}}}
    made = given_to(pod, SMALL)["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    memory = {"key": "nvidia.com/gpu.memory", "operator": "Gt", "values": ["12287"]}
    assert made == [{"matchExpressions": [*term["matchExpressions"], memory]} for term in mine]


def test_without_a_wish_the_affinity_is_left_alone():
    assert "affinity" not in given_to(POD)


@pytest.mark.parametrize(
    ("wishes", "selector", "message"),
    [
        (
            {"products": ["NVIDIA L4"]},
            {"nvidia.com/gpu.product": "NVIDIA-H200"},
            "the pod selects nodes with nvidia.com/gpu.product=NVIDIA-H200, where its GPU request wants NVIDIA-L4 or "
            "NVIDIA-L4-SHARED, so no node would match; leave one of the two out",
        ),
        (
            {"min_vram": "12Gi"},
            {"nvidia.com/gpu.memory": "8192"},
            "the pod selects nodes with nvidia.com/gpu.memory=8192, where its GPU request wants above 12287, so no "
            "node would match; leave one of the two out",
        ),
        (
            {"min_compute_capability": "8.6"},
            {"nvidia.com/gpu.compute.major": "7"},
            "the pod selects nodes with nvidia.com/gpu.compute.major=7, where its GPU request wants above 8 or 8, so "
            "no node would match; leave one of the two out",
        ),
    ],
    ids=str,
)
def test_a_node_selector_that_contradicts_a_wish_is_refused(wishes, selector, message):
    assert refusal(lambda: given_to({**POD, "nodeSelector": selector}, GpuRequest(**wishes))) == message


@pytest.mark.parametrize(
    ("wishes", "selector"),
    [
        ({"products": ["NVIDIA L4"]}, {"nvidia.com/gpu.product": "NVIDIA-L4-SHARED"}),
        ({"min_vram": "12Gi"}, {"nvidia.com/gpu.memory": "16303"}),
        ({"min_compute_capability": "8.6"}, {"nvidia.com/gpu.compute.major": "8"}),
        ({"min_compute_capability": "8.6"}, {"nvidia.com/gpu.compute.minor": "0"}),
        ({"products": ["NVIDIA L4"]}, {"nvidia.com/gpu.family": "ada-lovelace"}),
    ],
    ids=str,
)
def test_a_node_selector_that_a_node_can_meet_beside_the_wishes_stays(wishes, selector):
    assert given_to({**POD, "nodeSelector": selector}, GpuRequest(**wishes))["nodeSelector"] == selector


def test_labels_of_the_profile_must_not_be_contradicted():
    pod = {**POD, "nodeSelector": {"pool": "cpu"}}
    profile = GpuProfile(platform=Kubernetes(), node_selector={"pool": "gpu"})
    assert refusal(lambda: given_to(pod, profile=profile)) == (
        "the pod selects nodes with pool=cpu, where GPU pods need pool=gpu, so no node would match; leave that label "
        "out of the pod's selector"
    )


# --- a pod gets its GPUs --------------------------------------------------------------


def test_a_pod_of_a_talos_cluster_gets_all_that_it_needs():
    assert given_to({"containers": [{"name": "app"}]}, profile=GpuProfile(platform=Talos("1.12"))) == {
        "containers": [{"name": "app", "resources": {"limits": {"nvidia.com/gpu": 1}}}],
        "runtimeClassName": "nvidia",
        "nodeSelector": {"nvidia.com/gpu.present": "true"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
    }


def test_the_extended_resource_of_dra_differs_by_runtime_class_and_node_label_alone():
    made = given_to({"containers": [{"name": "app"}]}, profile=EXTENDED)
    assert made["containers"] == [{"name": "app", "resources": {"limits": {"nvidia.com/gpu": 1}}}]
    assert made.keys().isdisjoint({"runtimeClassName", "nodeSelector", "resourceClaims"})


@pytest.mark.parametrize(
    ("wishes", "source", "use"),
    [
        ({}, {"resourceClaimTemplateName": "app-gpu"}, {"name": "gpu", "request": "gpu"}),
        ({"resource_claim": "shared"}, {"resourceClaimName": "shared"}, {"name": "gpu"}),
    ],
)
def test_a_claim_takes_the_place_of_limit_runtime_class_and_affinity(wishes, source, use):
    made = given_to({"containers": [{"name": "app"}]}, GpuRequest(**wishes), CLAIMS, claim_template="app-gpu")
    assert made["resourceClaims"] == [{"name": "gpu", **source}]
    assert made["containers"][0]["resources"] == {"claims": [use]}
    assert made.keys().isdisjoint({"runtimeClassName", "affinity"})


def test_other_claims_of_the_pod_stay():
    pod = {
        "containers": [{"name": "app", "resources": {"claims": [{"name": "nic"}]}}],
        "resourceClaims": [{"name": "nic", "resourceClaimName": "nic"}],
    }
    made = given_to(pod, profile=CLAIMS, claim_template="t")
    assert [claim["name"] for claim in made["resourceClaims"]] == ["nic", "gpu"]
    assert [claim["name"] for claim in made["containers"][0]["resources"]["claims"]] == ["nic", "gpu"]


def test_cuda_and_its_tools_stay_when_more_of_the_driver_is_asked_for():
    request = GpuRequest(driver_capabilities=["video"])
    made = given_to({"containers": [{"name": "app", "env": [{"name": "A", "value": "b"}]}]}, request)
    assert made["containers"][0]["env"] == [
        {"name": "A", "value": "b"},
        {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "compute,utility,video"},
    ]


def test_tolerations_are_added_once():
    taint = Toleration(key="dedicated", value="ai", effect="NoSchedule")
    profile = GpuProfile(platform=Kubernetes(), tolerations=[taint])
    pod = {**POD, "tolerations": [taint.to_manifest()]}
    assert [one["key"] for one in given_to(pod, profile=profile)["tolerations"]] == ["dedicated", "nvidia.com/gpu"]


def test_a_pod_without_a_place_for_a_runtime_class_gets_none():
    profile = GpuProfile(platform=Talos("1.12"))
    assert "runtimeClassName" not in given_to(POD, profile=profile, names_runtime_class=False)


def test_another_runtime_class_is_refused():
    pod = {**POD, "runtimeClassName": "kata"}
    profile = GpuProfile(platform=Talos("1.12"))
    assert refusal(lambda: given_to(pod, profile=profile)) == (
        "the pod has runtimeClassName 'kata' already, where runtime_class 'nvidia' is asked for; leave one of the two "
        "out, or pass runtime_class='kata'"
    )


@pytest.mark.parametrize(
    "there",
    [
        {"limits": {"nvidia.com/gpu": 2}},
        {"requests": {"nvidia.com/gpu": "2"}},
        {"limits": {"nvidia.com/gpu.shared": 1}},
    ],
    ids=str,
)
@pytest.mark.parametrize("profile", [PLAIN, CLAIMS], ids=["limits", "claims"])
def test_another_number_of_gpus_is_refused(there, profile):
    pod = {"containers": [{"name": "app", "resources": there}]}
    assert refusal(lambda: given_to(pod, profile=profile)).startswith("container 'app' has ")


def test_an_equal_request_is_let_be():
    there = {"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}
    made = given_to({"containers": [{"name": "app", "resources": there}]})
    assert made["containers"][0]["resources"] == {**there, "limits": {"nvidia.com/gpu": 1}}


def test_a_choice_of_devices_is_refused_unless_it_is_the_users_own():
    pod = {"containers": [{"name": "app", "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}]}
    assert refusal(lambda: given_to(pod)).startswith(
        "container 'app' must not set NVIDIA_VISIBLE_DEVICES, got 'all': it overrides the GPU that was allocated"
    )
    assert given_to(pod, visible_devices="unmanaged")["containers"][0]["env"] == pod["containers"][0]["env"]


# --- which container -------------------------------------------------------------------


@pytest.mark.parametrize(("name", "found"), [(None, "app"), ("app", "app"), ("other", "other"), ("first", "first")])
def test_the_first_container_holds_the_gpus_unless_another_is_named(name, found):
    made = given_to(POD, container=name)
    holding = [one["name"] for group in ("containers", "initContainers") for one in made[group] if "resources" in one]
    assert holding == [found]


def test_a_predictor_without_containers_holds_them_in_its_model():
    pod = {"model": {"modelFormat": {"name": "onnx"}}}
    assert container_named(pod, None) is pod["model"]
    assert given_to(pod)["model"]["resources"] == {"limits": {"nvidia.com/gpu": 1}}


def test_a_container_that_is_not_there_is_refused_with_those_that_are():
    assert refusal(lambda: given_to(POD, container="oter"), ContainerMissingError) == (
        "container must be one of 'app', 'other', 'first'; got 'oter' (did you mean 'other'?)"
    )
    assert refusal(lambda: given_to({}), ContainerMissingError).startswith("the pod has no container")


def test_all_others_see_no_gpu():
    made = allocation(GpuRequest(), PLAIN).hide_from_others(given_to(POD))
    assert [one.get("env") for one in made["containers"]] == [None, [VOID]]
    assert made["initContainers"][0]["env"] == [VOID]


def test_a_choice_that_another_container_makes_itself_stays():
    chosen = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
    pod = {"containers": [{"name": "monitor", "env": chosen}]}
    assert allocation(GpuRequest(), PLAIN).hide_from_others(pod)["containers"][0]["env"] == chosen


def test_devices_by_cdi_need_no_variable_but_a_runtime_class_that_was_asked_for_does():
    assert allocation(GpuRequest(), EXTENDED).hide_from_others(POD) is POD
    asked = GpuProfile(platform=Kubernetes(), backend=Backend.dra_claims(), runtime_class="nvidia")
    assert allocation(GpuRequest(), asked).hide_from_others(POD)["containers"][1]["env"] == [VOID]


# --- twice is once ------------------------------------------------------------------------

labels = st.sampled_from(["a", "b", "nvidia.com/gpu.count"])
node_rules = st.fixed_dictionaries({"key": labels, "operator": st.just("Exists")})
containers = st.fixed_dictionaries(
    {"name": st.just("app")},
    optional={
        "env": st.lists(st.sampled_from([{"name": "A", "value": "b"}, {"name": "B", "value": ""}]), max_size=2),
        "resources": st.sampled_from(
            [{}, {"requests": {"cpu": "1"}}, {"limits": {"memory": "1Gi"}}, {"claims": [{"name": "nic"}]}]
        ),
    },
)
pods = st.fixed_dictionaries(
    {"containers": st.tuples(containers, st.just({"name": "other"})).map(list)},
    optional={
        "initContainers": st.just([{"name": "first"}]),
        "nodeSelector": st.dictionaries(labels, st.just("1"), max_size=2),
        "tolerations": st.lists(st.just({"operator": "Exists"}), max_size=1),
        "resourceClaims": st.just([{"name": "nic", "resourceClaimName": "nic"}]),
        "affinity": st.fixed_dictionaries(
            {},
            optional={
                "podAffinity": st.just({}),
                "nodeAffinity": st.builds(
                    lambda terms: {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}},
                    st.lists(st.lists(node_rules, min_size=1, max_size=2), min_size=1, max_size=3),
                ),
            },
        ),
    },
)
requests = st.one_of(
    st.builds(GpuRequest, count=st.integers(1, 8), driver_capabilities=st.sampled_from([(), ("video",)])),
    st.builds(
        GpuRequest,
        products=st.lists(st.sampled_from(["NVIDIA L4", "NVIDIA board"]), max_size=2),
        min_vram=st.sampled_from([None, "12Gi"]),
        min_compute_capability=st.sampled_from([None, "8.6", "8.9", "8.0"]),
    ),
)
profiles = st.sampled_from([PLAIN, CLAIMS, EXTENDED, GpuProfile(), GpuProfile(sharing=RENAMED, mig_strategy="mixed")])


@settings(max_examples=80)
@given(pod=pods, request=requests, profile=profiles, name=st.sampled_from([None, "app", "other"]))
def test_giving_twice_is_giving_once_and_leaves_the_pod_it_was_given_alone(pod, request, profile, name):
    if profile.sharing is not None and request.count > 1:
        request = GpuRequest()
    if profile is EXTENDED and request.selects:
        request = GpuRequest(resource="gpu.example.com/big")
    allocated = allocation(request, profile)
    before = copy.deepcopy(pod)
    once = allocated.hide_from_others(allocated.give(pod, container=name, claim_template="template"))
    assert pod == before
    kept = copy.deepcopy(once)
    twice = allocated.hide_from_others(allocated.give(once, container=name, claim_template="template"))
    assert twice == once == kept


def test_all_of_the_driver_is_asked_for_in_one_word():
    container = given_to(POD, GpuRequest(driver_capabilities=["all"]))["containers"][0]
    assert container["env"] == [{"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "all"}]


def test_devices_of_a_dra_driver_come_with_the_whole_driver():
    profile = GpuProfile(platform=Kubernetes("1.35"), backend=Backend.dra_claims())
    container = given_to(POD, GpuRequest(driver_capabilities=["video"]), profile=profile)["containers"][0]
    assert "DRIVER_CAPABILITIES" not in str(container)
