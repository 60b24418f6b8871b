"""An inventory read from YAML."""

import subprocess
import sys

import pytest

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.inventory import GpuInventory, GpuNode
from gpu_constructs.sharing import Sharing
from gpu_constructs.taint import Taint

TEXT = """\
# Of the whole cluster.
nodes:
  - name: a100
    gpu_model: NVIDIA A100-SXM4-40GB
    gpus: 2
    count: 3
    vram: 40000Mi
    vram_reserved: 1Gi
    mig_layout:
      - {1g.5gb: 7}
      - {}
    mig_strategy: mixed
    sharing:
      strategy: time-slicing
      resources: {nvidia.com/mig-1g.5gb: 2}
      fail_requests_greater_than_one: false
    labels: {zone: "1", tier: fast}
    taints:
      - {key: nvidia.com/gpu, value: present}
    power_limit: 300
    rack: r1
  - name: desktop
    gpu_model:
rack_watts: {r1: 4000}
"""


def refusal(text):
    with pytest.raises(GpuConstructsError) as refused:
        GpuInventory.from_yaml(text)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_the_keys_are_the_members():
    assert GpuInventory.from_yaml(TEXT) == GpuInventory(
        nodes=[
            GpuNode(
                name="a100",
                gpu_model="NVIDIA A100-SXM4-40GB",
                gpus=2,
                count=3,
                vram="40000Mi",
                vram_reserved="1Gi",
                mig_layout=[{"1g.5gb": 7}, {}],
                mig_strategy="mixed",
                sharing=Sharing.time_slicing(
                    resources={"nvidia.com/mig-1g.5gb": 2}, fail_requests_greater_than_one=False
                ),
                labels={"zone": "1", "tier": "fast"},
                taints=[Taint(value="present")],
                power_limit=300,
                rack="r1",
            ),
            GpuNode(name="desktop"),
        ],
        rack_watts={"r1": 4000},
    )


@pytest.mark.parametrize(
    ("text", "sharing"),
    [
        ("{strategy: vram-units, vram: 16303Mi}", Sharing.vram_units(vram="16303Mi")),
        ("{strategy: none}", Sharing.none()),
        ("{strategy: time-slicing, replicas: 5}", Sharing.time_slicing(replicas=5)),
        ("{strategy: mps, replicas: 8, rename_by_default: true}", Sharing.mps(replicas=8, rename_by_default=True)),
        ("", None),
    ],
)
def test_sharing_has_the_keywords_of_its_factory(text, sharing):
    (node,) = GpuInventory.from_yaml(f"nodes: [{{name: a, sharing: {text}}}]").nodes
    assert node.sharing == sharing


def test_one_layout_is_of_every_board():
    (node,) = GpuInventory.from_yaml("nodes: [{name: a, gpus: 2, mig_layout: {1g.5gb: 7}}]").nodes
    assert node.layouts == ({"1g.5gb": 7},) * 2


@pytest.mark.parametrize(
    ("right", "wrong", "problem"),
    [
        ("gpus: 2", "gpu: 2", "line 5: gpu is no key of nodes[0] (did you mean 'gpus'?)"),
        ("gpus: 2", "boards: 2", "line 5: boards is no key of nodes[0]; it has name, gpu_model, gpus, count, vram"),
        ("gpus: 2", "gpus: two", "line 5: nodes[0].gpus must be a whole number; got 'two'"),
        ("gpus: 2", "gpus: 010", "line 5: nodes[0].gpus must be a whole number; got 010"),
        ("gpus: 2", "gpus: yes", "line 5: nodes[0].gpus must be a whole number; got yes"),
        ("gpus: 2", "gpus: 1.5", "line 5: nodes[0].gpus must be a whole number; got 1.5"),
        ("gpus: 2", "gpus: 0", "line 5: nodes[0].gpus must be at least 1, got 0"),
        ("gpus: 2", "gpus: {a: 1}", "line 5: nodes[0].gpus must be a plain value; got keys and values"),
        ("count: 3", "gpus: 3", "line 6: nodes[0].gpus is given twice (before on line 5); keep one"),
        ("vram: 40000Mi", "vram: 41Gi", "line 7: nodes[0].vram must be at most the 40960Mi that NVIDIA A100-SXM4-40GB"),
        ("vram: 40000Mi", "vram: 40", "line 7: nodes[0].vram must be text; got 40; quote it"),
        ("{1g.5gb: 7}", "{1g.5gb: 8}", "line 9: nodes[0].mig_layout[0] must be devices that the board can be divided"),
        ("{1g.5gb: 7}", "{1g.5gb: x}", "line 10: nodes[0].mig_layout[0].1g.5gb must be a whole number; got 'x'"),
        (
            "mig_strategy: mixed",
            "mig_strategy: none",
            "line 12: nodes[0].mig_strategy must be one of 'single', 'mixed'",
        ),
        (
            "strategy: time-slicing",
            "strategy: sliced",
            "line 14: nodes[0].sharing.strategy must be one of 'none', 'time-",
        ),
        (
            "resources: {nvidia.com/mig-1g.5gb: 2}",
            "replica: 2",
            "line 15: replica is no key of nodes[0].sharing with strategy 'time-slicing' (did you mean 'replicas'?)",
        ),
        (
            "{nvidia.com/mig-1g.5gb: 2}",
            "{nvidia.com/mig-1g.5gb: 1}",
            "line 15: nodes[0].sharing.resources['nvidia.com/mig-1g.5gb'] must be at least 2, got 1",
        ),
        (
            "resources: {nvidia.com/mig-1g.5gb: 2}",
            "resources:",
            "line 13: nodes[0].sharing takes either replicas or resources; got neither",
        ),
        (
            "greater_than_one: false",
            "greater_than_one: 0",
            "line 16: nodes[0].sharing.fail_requests_greater_than_one must",
        ),
        ('zone: "1"', "zone: 1", "line 17: nodes[0].labels.zone must be text; got 1; quote it"),
        ('zone: "1"', "zone: true", "line 17: nodes[0].labels.zone must be text; got true; quote it"),
        ('zone: "1"', "a b: c", "line 17: nodes[0].labels has a key that is no label key; got 'a b'"),
        ("value: present", "valu: present", "line 19: valu is no key of nodes[0].taints[0] (did you mean 'value'?)"),
        ("value: present", "effect: Never", "line 19: nodes[0].taints[0].effect must be one of 'NoSchedule'"),
        ("rack: r1", "rack: 1", "line 21: nodes[0].rack must be text; got 1; quote it"),
        ("rack: r1", "rack: r2", "line 24: rack_watts must name racks of nodes; got 'r1'; say rack= of the nodes"),
        (
            "name: desktop",
            "name: a100",
            "line 22: nodes[1].name must be its own; got 'a100' as on line 3; use count: for",
        ),
        ("name: desktop", "labels: {}", "line 22: nodes[1].name is required"),
        ("{r1: 4000}", "{r1: lots}", "line 24: rack_watts.r1 must be a whole number; got 'lots'"),
        ("{r1: 4000}", "{r1: 0}", "line 24: rack_watts['r1'] must be at least 1, got 0"),
        ("nodes:", "node:", "line 2: node is no key of the file (did you mean 'nodes'?)"),
    ],
)
def test_what_is_wrong_has_its_line_and_its_path(right, wrong, problem):
    assert TEXT.count(right) == 1
    assert refusal(TEXT.replace(right, wrong)).startswith(problem)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "text is empty; write nodes: with a list of nodes, each with its name"),
        ("# nothing\n", "text is empty; write nodes:"),
        ("[]", "line 1: the file must hold keys and values; got a list"),
        ("nodes", "line 1: the file must hold keys and values; got 'nodes'"),
        ("nodes:", "line 1: nodes is required: a list of nodes, each with its name"),
        ("rack_watts: {}", "line 1: nodes is required: a list of nodes, each with its name"),
        ("nodes: []", "line 1: nodes must hold at least one GpuNode; got none"),
        ("nodes: {name: a}", "line 1: nodes must be a list; got keys and values"),
        ("nodes: [a]", "line 1: nodes[0] must hold keys and values; got 'a'"),
        ("nodes:\n- {name: a, sharing: mps}", "line 2: nodes[0].sharing must hold keys and values; got 'mps'"),
        (
            "nodes:\n- {name: a, sharing: {}}",
            "line 2: nodes[0].sharing.strategy is required: one of 'none', 'time-slic",
        ),
        ("nodes:\n- {name: a, sharing: {strategy: mps}}", "line 2: nodes[0].sharing.replicas is required"),
        ("nodes:\n\t- name: a", "line 2: text is no YAML: while scanning for the next token, found character '\\t'"),
        ("nodes: &all\n- name: a", "line 1: text must have no anchors or aliases; write the value out"),
        ("nodes: *all", "line 1: text must have no anchors or aliases; write the value out"),
        ("nodes: !!set {a}", "line 1: text must have no tags; got 'tag:yaml.org,2002:set'; write the value alone"),
        ("nodes: [{<<: {name: a}}]", "line 1: nodes[0] must have plain keys, neither merged (<<) nor composed"),
        ("nodes: [{? [a] : b}]", "line 1: nodes[0] must have plain keys, neither merged (<<) nor composed"),
        ("nodes: [{name: a}]\n---\nnodes: []", "line 2: text is no YAML: expected a single document"),
        ("nodes: [{name: a", "line 1: text is no YAML: "),
        ("a: b: c", "line 1: text is no YAML: mapping values are not allowed here"),
        ("a\x00", "line 1: text is no YAML: unacceptable character"),
        ("[" * 1000, "line 1: text must not be nested deeper than any key of an inventory"),
        ("nodes: [{name: a, gpus: 99999999999999999999}]", "line 1: nodes[0].gpus must be a number of at most 64 bits"),
    ],
)
def test_what_is_no_inventory_is_refused(text, problem):
    assert refusal(text).startswith(problem)


def test_a_tab_is_told_what_to_write_instead():
    assert refusal("nodes:\n\t- name: a").endswith("; use spaces")


def test_a_file_is_named_in_front_of_the_line(tmp_path):
    path = tmp_path / "gpus.yaml"
    path.write_text(TEXT)
    assert GpuInventory.from_file(path) == GpuInventory.from_file(str(path)) == GpuInventory.from_yaml(TEXT)
    path.write_text(TEXT.replace("gpus: 2", "gpus: 0"))
    with pytest.raises(GpuConstructsError, match=r"^gpus\.yaml line 5: nodes\[0\]\.gpus must be at least 1, got 0$"):
        GpuInventory.from_file(path)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(GpuConstructsError) as refused:
        GpuInventory.from_file(tmp_path / "gpus.yaml")
    assert str(refused.value) == (
        f"path must be a file of YAML that can be read; got '{tmp_path}/gpus.yaml': No such file or directory"
    )
    (tmp_path / "latin.yaml").write_bytes(b"nodes: [{name: \xfc}]")
    with pytest.raises(GpuConstructsError, match=r"latin\.yaml': it is no file of UTF-8 text$"):
        GpuInventory.from_file(tmp_path / "latin.yaml")


@pytest.mark.parametrize(("method", "word"), [("from_file", "path"), ("from_yaml", "text")])
def test_what_is_no_text_is_refused(method, word):
    with pytest.raises(GpuConstructsError, match=rf"^{word} must be .*; got int: 3$"):
        getattr(GpuInventory, method)(3)


def test_an_inventory_that_is_declared_needs_no_yaml():
    code = "import sys, gpu_constructs.inventory; print([m for m in ('yaml', 'json', 'typeguard') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


def test_a_file_may_hold_what_was_only_seen():
    (node,) = GpuInventory.from_yaml("nodes: [{name: a, is_observed: true}]").nodes
    assert node.is_observed
    with pytest.raises(GpuConstructsError, match=r"nodes\[0\]\.is_observed must be true or false; got 1"):
        GpuInventory.from_yaml("nodes: [{name: a, is_observed: 1}]")
