import copy

import pytest

from parity_fields import Names, fields_of, matches, node_term, quantity, show

POD = {
    "containers": [
        {
            "name": "main",
            "image": "example.com/main:1",
            "command": ["main", "run"],
            "args": ["-port=1", "-quiet"],
            "env": [
                {"name": "A", "value": "1"},
                {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            ],
            "ports": [{"name": "http", "containerPort": 8080}],
            "resources": {"requests": {"cpu": "100m"}},
            "securityContext": {"privileged": True, "capabilities": {"add": ["SYS_ADMIN"]}},
            "volumeMounts": [{"name": "root", "mountPath": "/host", "readOnly": True}],
        }
    ],
    "initContainers": [{"name": "first", "image": "i:1"}, {"name": "second", "image": "i:1"}],
    "hostPID": True,
    "serviceAccountName": "account",
    "tolerations": [{"key": "gpu", "operator": "Exists"}],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["x", "y"]}]}]
            }
        }
    },
    "volumes": [{"name": "root", "hostPath": {"path": "/", "type": "Directory"}}],
}
DAEMONSET = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "x", "namespace": "n", "labels": {"app": "x"}},
    "spec": {
        "selector": {"matchLabels": {"app": "x"}},
        "template": {"metadata": {"labels": {"app": "x"}}, "spec": POD},
    },
}


def daemonset(**pod):
    manifest = copy.deepcopy(DAEMONSET)
    manifest["spec"]["template"]["spec"] |= copy.deepcopy(pod)
    return manifest


def container(**members):
    return daemonset(containers=[{**POD["containers"][0], **members}])


def shown(manifest, **options):
    return {show(path): value for path, value in fields_of(manifest, **options).items()}


def test_every_leaf_of_a_daemonset_is_a_field():
    main = "pod.containers[main]"
    assert shown(DAEMONSET) == {
        "apiVersion": "apps/v1",
        "metadata.namespace": "n",
        "metadata.labels[app]": "x",
        "spec.selector.matchLabels[app]": "x",
        "pod.labels[app]": "x",
        "pod.hostPID": True,
        "pod.serviceAccountName": "account",
        'pod.tolerations[{"key":"gpu","operator":"Exists"}]': True,
        'pod.nodes[{"matchExpressions":[{"key":"a","operator":"In","values":["x","y"]}]}]': True,
        "pod.initContainers[first].image": "i:1",
        "pod.initContainers[first].imagePullPolicy": "IfNotPresent",
        "pod.initContainers[second].image": "i:1",
        "pod.initContainers[second].imagePullPolicy": "IfNotPresent",
        "pod.initContainers[second].after": "first",
        f"{main}.image": "example.com/main:1",
        f"{main}.imagePullPolicy": "IfNotPresent",
        f"{main}.command[0]": "main",
        f"{main}.command[1]": "run",
        f"{main}.args[-port]": "1",
        f"{main}.args[-quiet]": "",
        f"{main}.env[A]": "1",
        f"{main}.env[NODE].valueFrom.fieldRef.fieldPath": "spec.nodeName",
        f"{main}.ports[http].name": "http",
        f"{main}.ports[http].containerPort": 8080,
        f"{main}.resources.requests[cpu]": "0.1",
        f"{main}.securityContext.privileged": True,
        f"{main}.securityContext.capabilities.add[SYS_ADMIN]": True,
        f"{main}.mounts[/host].readOnly": True,
        f"{main}.mounts[/host].hostPath.path": "/",
        f"{main}.mounts[/host].hostPath.type": "Directory",
    }


SAME = {
    "renamed volumes": container(volumeMounts=[{"name": "other", "mountPath": "/host", "readOnly": True}]),
    "another order of variables": container(env=POD["containers"][0]["env"][::-1]),
    "another order of flags": container(args=["-quiet", "-port=1"]),
    "values of an expression in another order": daemonset(
        affinity={
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["y", "x"]}]}]
                }
            }
        }
    ),
    "another spelling of an amount": container(resources={"requests": {"cpu": 0.1}}),
    "Kubernetes' own defaults": daemonset(
        dnsPolicy="ClusterFirst", restartPolicy="Always", hostNetwork=False, imagePullSecrets=None, securityContext={}
    ),
    "the DNS policy that means the same without the host's network": daemonset(dnsPolicy="ClusterFirstWithHostNet"),
    "a pull policy that holds anyway": container(imagePullPolicy="IfNotPresent"),
    "an empty value of a variable": container(env=[*POD["containers"][0]["env"]]),
}
SAME["renamed volumes"]["spec"]["template"]["spec"]["volumes"][0]["name"] = "other"


@pytest.mark.parametrize("change", SAME)
def test_what_means_the_same_is_the_same(change):
    assert fields_of(SAME[change]) == fields_of(DAEMONSET)


def of_nodes(**members):
    required = {**POD["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"], **members}
    return daemonset(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}})


MOUNT = POD["containers"][0]["volumeMounts"][0]
DIFFERENT = {
    "image": container(image="example.com/main:2"),
    "command": container(command=["run", "main"]),
    "a flag": container(args=["-port=2", "-quiet"]),
    "a flag given twice": container(args=["-port=1", "-port=1", "-quiet"]),
    "a variable": container(env=[{"name": "A", "value": "2"}, POD["containers"][0]["env"][1]]),
    "a variable less": container(env=POD["containers"][0]["env"][1:]),
    "a variable more": container(env=[*POD["containers"][0]["env"], {"name": "B"}]),
    "a variable twice": container(env=[*POD["containers"][0]["env"], {"name": "A", "value": "1"}]),
    "a port": container(ports=[{"name": "http", "containerPort": 8081}]),
    "an amount": container(resources={"requests": {"cpu": "101m"}}),
    "privileged": container(securityContext={"privileged": False, "capabilities": {"add": ["SYS_ADMIN"]}}),
    "a capability": container(securityContext={"privileged": True, "capabilities": {"add": ["NET_ADMIN"]}}),
    "where something is mounted": container(volumeMounts=[{**MOUNT, "mountPath": "/elsewhere"}]),
    "read-only": container(volumeMounts=[{**MOUNT, "readOnly": False}]),
    "propagation": container(volumeMounts=[{**MOUNT, "mountPropagation": "Bidirectional"}]),
    "a part of a volume": container(volumeMounts=[{**MOUNT, "subPath": "etc"}]),
    "no such volume": container(volumeMounts=[{**MOUNT, "name": "none"}]),
    "a host path": daemonset(volumes=[{"name": "root", "hostPath": {"path": "/etc", "type": "Directory"}}]),
    "the type of a host path": daemonset(volumes=[{"name": "root", "hostPath": {"path": "/"}}]),
    "a volume that nobody mounts": daemonset(volumes=[*POD["volumes"], {"name": "b", "hostPath": {"path": "/"}}]),
    "the order of init containers": daemonset(initContainers=POD["initContainers"][::-1]),
    "host PID": daemonset(hostPID=False),
    "the account": daemonset(serviceAccountName="other"),
    "a toleration": daemonset(tolerations=[{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]),
    "no toleration": daemonset(tolerations=[]),
    "a node": daemonset(affinity={}),
    "a preferred node": daemonset(
        affinity={
            "nodeAffinity": {
                **POD["affinity"]["nodeAffinity"],
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {}}],
            }
        }
    ),
    "another pod's place": daemonset(affinity={**POD["affinity"], "podAntiAffinity": {}}),
    "the DNS policy in the host's network": daemonset(dnsPolicy="Default"),
    "a field nobody thought of": daemonset(overhead={"cpu": "1"}),
    "a pull policy": container(imagePullPolicy="Always"),
    "a claim": container(resources={**POD["containers"][0]["resources"], "claims": [{"name": "gpu"}]}),
    "a volume that is there twice": daemonset(volumes=[*POD["volumes"], POD["volumes"][0]]),
    "a condition on nodes that nobody thought of": of_nodes(strict=True),
    "a member of the conditions that nobody thought of": daemonset(
        affinity={"nodeAffinity": {**POD["affinity"]["nodeAffinity"], "x": 1}}
    ),
    "a member of the template": {
        **DAEMONSET,
        "spec": {**DAEMONSET["spec"], "template": {**DAEMONSET["spec"]["template"], "x": 1}},
    },
}


@pytest.mark.parametrize("change", DIFFERENT)
def test_what_means_something_else_is_different(change):
    assert fields_of(DIFFERENT[change]) != fields_of(DAEMONSET)


def test_a_toleration_without_an_operator_asks_for_the_value():
    said = daemonset(tolerations=[{"key": "a", "operator": "Equal", "value": "x", "effect": ""}])
    assert fields_of(daemonset(tolerations=[{"key": "a", "value": "x"}])) == fields_of(said)


def test_words_that_are_no_flags_keep_their_order():
    assert shown(container(args=["run", "-quiet"])).items() >= {
        ("pod.containers[main].args[0]", "run"),
        ("pod.containers[main].args[1]", "-quiet"),
    }


def test_a_mount_of_a_volume_that_is_not_there_says_so():
    found = shown(container(volumeMounts=[{**MOUNT, "name": "none"}]))
    assert found["pod.containers[main].mounts[/host].volume"] == "none is not there"


def test_the_dns_policy_counts_in_the_hosts_network():
    in_host_network = daemonset(hostNetwork=True)
    assert fields_of(daemonset(hostNetwork=True, dnsPolicy="ClusterFirstWithHostNet")) != fields_of(in_host_network)


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("a", "Always"),
        ("a:latest", "Always"),
        ("r:5000/a", "Always"),
        ("a:1", "IfNotPresent"),
        ("a@sha256:0", "IfNotPresent"),
    ],
)
def test_an_image_without_a_pull_policy_has_the_one_kubernetes_gives_it(image, policy):
    assert fields_of(container(image=image)) == fields_of(container(image=image, imagePullPolicy=policy))


def test_an_empty_directory_is_told_by_who_shares_it():
    mount = {"name": "tmp", "mountPath": "/tmp"}
    volumes = [{"name": "tmp", "emptyDir": {}}]
    alone = daemonset(containers=[{"name": "a", "volumeMounts": [mount]}, {"name": "b"}], volumes=volumes)
    shared = daemonset(
        containers=[{"name": "a", "volumeMounts": [mount]}, {"name": "b", "volumeMounts": [mount]}], volumes=volumes
    )
    assert shown(alone)["pod.containers[a].mounts[/tmp].shared with"] == "a"
    assert shown(shared)["pod.containers[a].mounts[/tmp].shared with"] == "a, b"


class Known(Names):
    def refer(self, kind, name):
        return f"the {kind} {name}"

    def files(self, config_map):
        return ["a.conf", "b.conf"]


def with_config_map(**source):
    return daemonset(volumes=[{"name": "root", "configMap": {"name": "x-config", **source}}])


def test_names_of_objects_are_given_as_roles():
    fields = shown(with_config_map(), names=Known())
    assert fields["pod.serviceAccountName"] == "the ServiceAccount account"
    assert fields["pod.containers[main].mounts[/host].configMap"] == "the ConfigMap x-config"


def test_a_config_map_is_told_by_the_files_it_gives():
    every = with_config_map(items=[{"key": "b.conf", "path": "b.conf"}, {"key": "a.conf", "path": "a.conf"}])
    moved = with_config_map(items=[{"key": "b.conf", "path": "a.conf"}, {"key": "a.conf", "path": "b.conf"}])
    fewer = with_config_map(items=[{"key": "b.conf", "path": "b.conf"}])
    other_mode = with_config_map(defaultMode=0o400)
    assert fields_of(every, Known()) == fields_of(with_config_map(), Known())
    for other in (moved, fewer, other_mode):
        assert fields_of(other, Known()) != fields_of(with_config_map(), Known())


RULES = [
    {"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["get", "list"]},
    {"apiGroups": ["g"], "resources": ["things"], "resourceNames": ["one"], "verbs": ["update"]},
]


def role(rules):
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"}, "rules": rules}


def test_rights_are_a_set_of_what_may_be_done_to_what():
    split = [
        {"apiGroups": ["g"], "resources": ["things"], "resourceNames": ["one"], "verbs": ["update"]},
        *({"apiGroups": [""], "resources": [r], "verbs": [v]} for v in ("list", "get") for r in ("nodes", "pods")),
    ]
    assert fields_of(role(RULES)).keys() >= {("rules", "[update things.g one]"), ("rules", "[list pods]")}
    assert fields_of(role(split)) == fields_of(role(RULES))


@pytest.mark.parametrize(
    "rule",
    [
        {**RULES[1], "verbs": ["update", "delete"]},
        {**RULES[1], "resources": ["others"]},
        {**RULES[1], "apiGroups": ["h"]},
        {**RULES[1], "resourceNames": ["two"]},
        {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
        {**RULES[1], "nonResourceURLs": ["/metrics"]},
    ],
)
def test_another_right_is_a_difference(rule):
    assert fields_of(role([RULES[0], rule])) != fields_of(role(RULES))


def test_a_binding_is_told_by_its_role_and_its_subjects():
    binding = {
        "kind": "RoleBinding",
        "metadata": {"name": "b"},
        "roleRef": {"kind": "Role", "name": "r", "apiGroup": "rbac.authorization.k8s.io"},
        "subjects": [{"kind": "ServiceAccount", "name": "a", "namespace": "n"}],
    }
    assert shown(binding) == {
        "roleRef.name": "r",
        "roleRef.kind": "Role",
        "roleRef.apiGroup": "rbac.authorization.k8s.io",
        "subjects[a].kind": "ServiceAccount",
        "subjects[a].namespace": "n",
    }


def test_empty_means_none_only_where_kubernetes_says_so():
    closed = {"kind": "NetworkPolicy", "metadata": {"name": "p"}, "spec": {"podSelector": {}, "ingress": []}}
    opened = {**closed, "spec": {"podSelector": {}, "ingress": [{}]}}
    assert shown(closed) == {"spec.podSelector": "{}"}
    assert fields_of(opened) != fields_of(closed)
    assert shown({"kind": "X", "spec": {"a": {}, "b": []}}) == {"spec.a": "{}", "spec.b": "[]"}
    assert fields_of({"kind": "X", "metadata": {"name": "p", "labels": {}}, "spec": None}) == {}


def test_lists_without_names_keep_their_order():
    definition = {"kind": "CustomResourceDefinition", "metadata": {"name": "d"}, "spec": {"names": ["b", "a"]}}
    assert shown(definition) == {"spec.names[0]": "b", "spec.names[1]": "a"}


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("pod.hostPID", ("pod", "hostPID"), True),
        ("pod.hostPID", ("pod", "hostIPC"), False),
        ("pod.hostPID", ("pod", "hostPID", "x"), False),
        ("pod.containers[*].image", ("pod", "containers", "[a]", "image"), True),
        ("pod.containers[a|b].image", ("pod", "containers", "[b]", "image"), True),
        ("pod.containers[a|b].image", ("pod", "containers", "[c]", "image"), False),
        ("pod.containers.*.image", ("pod", "containers", "[c]", "image"), False),
        ("pod.*[c].image", ("pod", "containers", "[c]", "image"), True),
        ("pod.containers[*].**", ("pod", "containers", "[c]", "env", "[A]"), True),
        ("pod.containers[*].**", ("pod", "containers"), False),
        ("spec.**", ("pod", "spec"), False),
    ],
)
def test_a_pattern_fits_paths_member_by_member(pattern, path, fits):
    assert matches(pattern, path) is fits


@pytest.mark.parametrize(
    ("amounts", "spelling"),
    [
        (("100m", 0.1, "0.1", "1e-1"), "0.1"),
        ((2, "2", "2.0", "2000m"), "2"),
        (("1Gi", "1024Mi", 1073741824), "1073741824"),
        (("1G", "1e9"), "1000000000"),
        (("lots",), "lots"),
    ],
)
def test_amounts_have_one_spelling(amounts, spelling):
    assert {quantity(amount) for amount in amounts} == {spelling}


def test_a_node_selector_term_can_be_read_back_from_its_path():
    (path,) = (path for path in fields_of(DAEMONSET) if path[:2] == ("pod", "nodes"))
    assert node_term(path[2]) == {"matchExpressions": [{"key": "a", "operator": "In", "values": ["x", "y"]}]}
