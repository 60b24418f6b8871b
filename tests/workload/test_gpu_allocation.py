"""The allocation of a request in a cluster, and the fields that a pod gets."""

import copy

import pytest
from cdk8s import ApiObject
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_constructs import Backend, GpuProfile, GpuRequest, GpuResourceClaim, Kubernetes, Sharing, Talos
from gpu_constructs.errors import GpuConstructsWarning
from gpu_constructs.workload.gpu_allocation import allocation, node_terms
from refusals import check_refusals, refusal
from tables import cases

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
GPU = "nvidia.com/gpu"
VOID = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}
PLAIN = GpuProfile(platform=Kubernetes())
RENAMED = Sharing.time_slicing(replicas=4, rename_by_default=True)
BY_CLAIM, BY_NAME = Backend.dra_claims(), Backend.dra_extended_resource()
CLAIMS = GpuProfile(platform=Kubernetes(), backend=BY_CLAIM)
EXTENDED = GpuProfile(platform=Talos("1.14"), backend=BY_NAME)
POD = {"containers": [{"name": "app"}, {"name": "other"}], "initContainers": [{"name": "first"}]}


def terms(profile=PLAIN, **wanted):
    return [
        [f"{rule['key'].removeprefix(f'{GPU}.')} {rule['operator']} {' '.join(rule['values'])}" for rule in term]
        for term in node_terms(GpuRequest(**wanted), profile)
    ]


def given_to(pod, request=None, profile=PLAIN, **how):
    return allocation(request or GpuRequest(), profile).give(pod, **how)


# --- what is asked for ------------------------------------------------------------


@cases
def test_a_request_is_a_limit_of_the_advertised_resource(profile, wanted, expected):
    limits = allocation(GpuRequest(**wanted), GpuProfile(platform=Kubernetes(), **profile)).limits
    assert limits == expected
    assert all(type(number) is int for number in limits.values())


def test_requests_that_the_cluster_would_reject_are_rejected(rows):
    check_refusals(
        lambda profile, wanted: allocation(GpuRequest(**wanted), GpuProfile(platform=Kubernetes(), **profile)),
        [({"profile": profile, "wanted": wanted}, says) for profile, wanted, says in rows],
    )


# --- which nodes --------------------------------------------------------------------


def test_a_request_is_one_node_term_except_for_a_minor_capability(rows):
    for wanted, expected in rows:
        assert terms(**wanted) == expected


PRO_6000 = "NVIDIA RTX PRO 6000 Blackwell {}Workstation Edition"


def test_with_strategy_single_product_labels_contain_the_mig_profile():
    wanted = {"products": ["NVIDIA A100-SXM4-80GB"], "mig_profile": "1g.10gb+me"}
    board = "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb.me"
    assert terms(GpuProfile(mig_strategy="single"), **wanted) == [[f"product In {board} {board}-SHARED"]]
    whole = [["product In NVIDIA-A100-SXM4-80GB NVIDIA-A100-SXM4-80GB-SHARED"]]
    assert terms(GpuProfile(mig_strategy="mixed"), **wanted) == whole


def test_a_product_label_that_is_too_long_is_omitted_or_rejected(rows):
    for name, sharing, parts in rows:
        profile = GpuProfile(mig_strategy="single", sharing=sharing)
        wanted = {"products": [PRO_6000.format(name)], "mig_profile": "1g.24gb"}
        if parts is None:
            board = "NVIDIA-RTX-PRO-6000-Blackwell-Workstation-Edition-MIG-1g.24gb"
            assert terms(profile, **wanted) == [[f"product In {board}"]]
        else:
            said = refusal(terms, profile, **wanted)
            assert all(part in said for part in parts)


@pytest.mark.parametrize("product", ["NVIDIA H200", "NVIDIA Unheard Of"])
def test_with_strategy_single_products_without_a_profile_warn(product):
    single = GpuProfile(platform=Kubernetes(), mig_strategy="single")
    with pytest.warns(GpuConstructsWarning, match="To select MIG devices, add request.mig_profile") as told:
        made = terms(single, products=["NVIDIA L4", product])
    assert len(told) == 1
    assert made == terms(products=["NVIDIA L4", product])


def test_a_claim_object_has_a_namespace(chart):
    raw = {"api_version": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"namespace": "c"}}
    for claim, namespace in (
        ("shared", None),
        (GpuResourceClaim(chart, "shared", profile=CLAIMS, namespace="b"), "b"),
        (ApiObject(chart, "raw", **raw), "c"),
    ):
        made = allocation(GpuRequest(resource_claim=claim), CLAIMS)
        assert made.existing_claim is not None
        assert made.existing_claim_namespace == namespace


def test_a_conflicting_node_selector_is_rejected_and_others_stay(rows):
    for wanted, label, value, said in rows:
        pod, request = {**POD, "nodeSelector": {f"{GPU}.{label}": value}}, GpuRequest(**wanted)
        if said is None:
            assert given_to(pod, request)["nodeSelector"] == pod["nodeSelector"]
        else:
            assert refusal(given_to, pod, request) == (
                f"the pod selects nodes with {GPU}.{label}={value}, and its GPU request needs {said}, so no node "
                "matches. Remove one of them"
            )


def test_a_conflicting_field_of_the_pod_is_rejected(rows):
    check_refusals(given_to, rows)
    equal = {"requests": {GPU: "1"}, "limits": {GPU: "1"}}
    made = given_to({"containers": [{"name": "app", "resources": equal}]})
    assert made["containers"][0]["resources"] == {**equal, "limits": {GPU: 1}}


# --- a pod gets its GPUs --------------------------------------------------------------


def test_a_pod_of_a_talos_cluster_gets_all_fields(expected):
    assert given_to({"containers": [{"name": "app"}]}, profile=GpuProfile(platform=Talos("1.12"))) == expected


@cases
def test_a_claim_replaces_limit_runtime_class_and_affinity(wanted, source, use):
    made = given_to({"containers": [{"name": "app"}]}, GpuRequest(**wanted), CLAIMS, claim_template="app-gpu")
    assert made["resourceClaims"] == [{"name": "gpu", **source}]
    assert made["containers"][0]["resources"] == {"claims": [use]}
    assert made.keys().isdisjoint({"runtimeClassName", "affinity"})


@cases
def test_compute_and_utility_stay_with_further_driver_capabilities(asked, profile, told):
    env = [{"name": "A", "value": "b"}]
    made = given_to({"containers": [{"name": "app", "env": env}]}, GpuRequest(driver_capabilities=[asked]), profile)
    capabilities = [{"name": "NVIDIA_DRIVER_CAPABILITIES", "value": value} for value in told]
    assert made["containers"][0]["env"] == [*env, *capabilities]


# --- which container -------------------------------------------------------------------


@pytest.mark.parametrize(("name", "found"), [(None, "app"), ("app", "app"), ("other", "other"), ("first", "first")])
def test_the_first_container_holds_the_gpus_unless_another_is_named(name, found):
    made = given_to(POD, container=name)
    holding = [one["name"] for group in ("containers", "initContainers") for one in made[group] if "resources" in one]
    assert holding == [found]


def test_a_predictor_without_containers_has_the_gpus_in_its_model():
    pod = {"model": {"modelFormat": {"name": "onnx"}}}
    assert given_to(pod)["model"]["resources"] == {"limits": {"nvidia.com/gpu": 1}}


def test_all_other_containers_see_no_gpu():
    made = allocation(GpuRequest(), PLAIN).hide_from_others(given_to(POD))
    assert [one.get("env") for one in made["containers"]] == [None, [VOID]]
    assert made["initContainers"][0]["env"] == [VOID]


def test_visible_devices_of_another_container_stay():
    chosen = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
    pod = {"containers": [{"name": "monitor", "env": chosen}]}
    assert allocation(GpuRequest(), PLAIN).hide_from_others(pod)["containers"][0]["env"] == chosen


def test_cdi_needs_no_variable_unless_the_user_sets_a_runtime_class():
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
def test_giving_gpus_twice_changes_nothing_and_keeps_the_input(pod, request, profile, name):
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
