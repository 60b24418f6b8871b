"""Containers of pods, run without a container engine: what a program finds in its container."""

import re

import pytest

from container import ContainerError, Host, Image

IMAGE = Image({})


def pod(*scripts, inits=(), **spec):
    """Return a pod with a container for each script; a container of one with fields beside its script is a pair."""

    def container(number, one, kind):
        script, fields = one if isinstance(one, tuple) else (one, {})
        return {"name": f"{kind}{number}", "image": "none", "command": ["sh", "-c", script], **fields}

    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pod", "namespace": "default", "uid": "1-2", "labels": {"app.io/name": "it"}},
        "spec": {
            "nodeName": "node",
            "containers": [container(number, one, "main") for number, one in enumerate(scripts)],
            "initContainers": [container(number, one, "init") for number, one in enumerate(inits)],
            **spec,
        },
    }


def env(**values):
    return {"env": [{"name": name, "value": value} for name, value in values.items()]}


def field(path):
    return {"env": [{"name": "FOUND", "valueFrom": {"fieldRef": {"fieldPath": path}}}]}


def security(**context):
    return {"securityContext": context}


@pytest.fixture
def host(tmp_path):
    tools = {"nvidia-smi": "#!/bin/sh\necho fake"}
    made = Host(tmp_path / "n", IMAGE, tools=tools)
    made.place("dev/nvidia0")
    with made as node:
        yield node


def output(host, manifest, objects=(), name="main0"):
    program = host.run(manifest, objects)[name]
    status = program.wait()
    return program.output().strip() if status == 0 else f"{status}: {program.output().strip()}"


HELD = "while read name bits; do [ $name != CapEff: ] || echo $bits; done </proc/self/status"
PRIVILEGES = "while read name value; do [ $name != NoNewPrivs: ] || echo $value; done </proc/self/status"


@pytest.mark.parametrize(
    ("script", "fields", "found"),
    [
        pytest.param("touch /new && echo made", {}, "made", id="a-root-is-writable"),
        pytest.param(
            "touch /new", security(readOnlyRootFilesystem=True), "1: .*Read-only file system", id="unless-read-only"
        ),
        pytest.param(HELD, {}, "00000000a80425fb", id="capabilities-of-containerd"),
        pytest.param(HELD, security(capabilities={"drop": ["ALL"]}), "0000000000000000", id="capabilities-dropped"),
        pytest.param(
            HELD,
            security(capabilities={"drop": ["ALL"], "add": ["SYS_ADMIN"]}),
            "0000000000200000",
            id="capabilities-added",
        ),
        pytest.param(HELD, security(privileged=True), "0*1f[0-9a-f]*", id="privileged"),
        pytest.param(HELD, security(runAsUser=65532), "0000000000000000", id="another-user-holds-none"),
        pytest.param(PRIVILEGES, {}, "0", id="privileges-may-grow"),
        pytest.param(PRIVILEGES, security(allowPrivilegeEscalation=False), "1", id="privileges-may-not-grow"),
        pytest.param('echo "$B"', env(A="x", B="$(A)-$(C)-$$(A)"), r"x-\$\(C\)-\$\(A\)", id="references"),
        pytest.param("echo $FOUND", field("spec.nodeName"), "node", id="field-node"),
        pytest.param("echo $FOUND", field("metadata.uid"), "1-2", id="field-uid"),
        pytest.param("echo $FOUND", field("metadata.labels['app.io/name']"), "it", id="field-label"),
        pytest.param("echo $$$$", {}, "1", id="a-pid-namespace-of-its-own"),
        pytest.param("exit 7", {}, "7: ", id="exit-status"),
        pytest.param("kill -TERM $$$$; exit 3", {}, "3: ", id="the-first-process-ignores-what-it-does-not-handle"),
        pytest.param(f"[ -e {__file__} ] || echo none", {}, "none", id="no-file-of-this-machine"),
    ],
)
def test_a_container_gets_what_its_specification_states(host, script, fields, found):
    answer = output(host, pod((script, fields)))
    assert re.fullmatch(found, answer, re.DOTALL), answer


@pytest.mark.parametrize(
    ("runtime", "visible", "is_injected"),
    [("nvidia", "all", True), ("nvidia", "void", False), (None, "all", False)],
)
def test_the_driver_is_injected_by_its_runtime_for_those_who_ask(host, runtime, visible, is_injected):
    spec = {} if runtime is None else {"runtimeClassName": runtime}
    script = "[ -c /dev/nvidia0 ] && nvidia-smi || echo none"
    answer = output(host, pod((script, env(NVIDIA_VISIBLE_DEVICES=visible)), **spec))
    assert answer == ("fake" if is_injected else "none")


def test_a_config_map_is_mounted_read_only(host):
    data = {"kind": "ConfigMap", "metadata": {"name": "files", "namespace": "default"}, "data": {"a": "text"}}
    mount = {"volumeMounts": [{"name": "files", "mountPath": "/etc/files"}]}
    script = "cat /etc/files/a && ! touch /etc/files/b 2>/dev/null"
    volumes = [{"name": "files", "configMap": {"name": "files"}}]
    assert output(host, pod((script, mount), volumes=volumes), [data]) == "text"


def test_paths_of_the_node_are_those_of_the_host(host):
    host.place("var/lib/thing", "of the node")
    mount = {"volumeMounts": [{"name": "var", "mountPath": "/host"}]}
    script = "cat /host/thing; touch /host/new"
    volumes = [{"name": "var", "hostPath": {"path": "/var/lib", "type": "Directory"}}]
    assert output(host, pod((script, mount), volumes=volumes)) == "of the node"
    assert (host.root / "var/lib/new").exists()


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        (pod("true", volumes=[{"name": "a", "hostPath": {"path": "/no", "type": "Directory"}}]), "not a Directory"),
        (pod("true", volumes=[{"name": "a", "configMap": {"name": "no"}}]), 'configmap "no" not found'),
        (pod("true", volumes=[{"name": "a", "secret": {"secretName": "no"}}]), "not supported here"),
        (pod(("true", security(runAsNonRoot=True))), "its image runs as root"),
        (pod("true", inits=["echo it broke; exit 3"]), r"init0 ended with 3: it broke"),
    ],
)
def test_what_a_kubelet_would_not_start_does_not_start(host, manifest, reason):
    with pytest.raises(ContainerError, match=reason):
        host.run(manifest)


def test_init_containers_come_first_and_share_volumes(host):
    mounts = {"volumeMounts": [{"name": "work", "mountPath": "/shared"}]}
    first, second = ("sleep 0.2; echo one > /shared/file", mounts), ("cat /shared/file", mounts)
    assert output(host, pod(second, inits=[first], volumes=[{"name": "work", "emptyDir": {}}])) == "one"


@pytest.mark.parametrize(("propagation", "found"), [("Bidirectional", "seen"), ("None", "unseen")])
def test_a_mount_is_seen_by_later_containers_if_it_propagates(host, propagation, found):
    mounts = [{"name": "run", "mountPath": "/run/it", "mountPropagation": propagation}]
    maker = "mkdir /run/it/shm; mount -t tmpfs none /run/it/shm; touch /run/it/shm/file"
    looker = "[ -e /run/it/shm/file ] && echo seen || echo unseen"
    manifest = pod(
        (looker, {"volumeMounts": [{"name": "run", "mountPath": "/run/it"}]}),
        inits=[(maker, {"volumeMounts": mounts, **security(privileged=True)})],
        volumes=[{"name": "run", "hostPath": {"path": "/run/it"}}],
    )
    assert output(host, manifest) == found
    assert not (host.root / "run/it/shm/file").exists()


@pytest.mark.parametrize(("spec", "found"), [({}, "alone"), ({"shareProcessNamespace": True}, "together")])
def test_containers_see_each_other_if_the_pod_says_so(host, spec, found):
    mounts = {"volumeMounts": [{"name": "work", "mountPath": "/shared"}]}
    looker = "until [ -e /shared/up ]; do sleep 0.1; done; for p in /proc/[0-9]*; do cat $p/cmdline; done | cat"
    volumes = [{"name": "work", "emptyDir": {}}]
    answer = output(host, pod((looker, mounts), ("touch /shared/up; sleep 99.125; :", mounts), volumes=volumes, **spec))
    assert ("99.125" in answer) == (found == "together")


def test_no_process_outlives_its_node(tmp_path):
    with Host(tmp_path / "n", IMAGE) as host:
        program = host.run(pod("trap '' TERM; while :; do sleep 0.1; done"))["main0"]
        assert program.exit_status is None
        program.wait_until(lambda: True)
    assert program.exit_status is not None
