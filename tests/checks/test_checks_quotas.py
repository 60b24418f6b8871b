"""Workloads that a ResourceQuota of the app would refuse, and GPUs that it does not count."""

from gpu_constructs.catalog.sharing import Sharing
from gpu_constructs.checks.quotas import quotas_fit_and_count
from gpu_constructs.facts.app import Facts
from gpu_constructs.facts.provided import GpuOffer, Provided

GPU = "nvidia.com/gpu"
MIG = "nvidia.com/mig-1g.10gb"


def obj(api_version, kind, spec, namespace="team", name="x"):
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def quota(namespace="team", **hard):
    spec = {"hard": hard.pop("hard", hard)}
    return obj("v1", "ResourceQuota", {**spec}, namespace)


def box(**resources):
    return {"name": "main", "image": "a:1", "resources": resources}


def pod_of(*boxes, **spec):
    return {"containers": list(boxes), **spec}


def job(*boxes, **spec):
    return obj("batch/v1", "Job", {"template": {"spec": pod_of(*boxes, **spec)}})


def deployment(limits, **spec):
    return obj("apps/v1", "Deployment", {"template": {"spec": pod_of(box(limits=limits))}, **spec})


def found(*manifests, provided=()):
    return list(quotas_fit_and_count(Facts(manifests, provided)))


def errors(*manifests):
    return [finding.problem for finding in found(*manifests) if not finding.is_warning]


def warnings(*manifests, provided=()):
    return [finding.problem for finding in found(*manifests, provided=provided) if finding.is_warning]


def test_a_pod_larger_than_the_quota_of_its_namespace_is_an_error():
    for hard, resources, counted in [
        ({f"requests.{GPU}": 1}, {"limits": {GPU: 2}}, "2"),
        ({f"requests.{GPU}": 0}, {"limits": {GPU: 1}}, "1"),
        ({f"requests.{MIG}": 1}, {"limits": {MIG: 2}}, "2"),
        ({"requests.memory": "4Gi"}, {"limits": {"memory": "8Gi"}}, "8Gi"),
        ({"memory": "4Gi"}, {"requests": {"memory": "5Gi"}, "limits": {"memory": "8Gi"}}, "5Gi"),
        ({"limits.memory": "4Gi"}, {"limits": {"memory": "4097Mi"}}, "4097Mi"),
        ({"requests.cpu": "1"}, {"requests": {"cpu": "1500m"}}, "1.5"),
        ({"cpu": 1}, {"requests": {"cpu": 2}}, "2"),
        ({"requests.ephemeral-storage": "1Gi"}, {"requests": {"ephemeral-storage": "2Gi"}}, "2Gi"),
        ({"hugepages-2Mi": "2Mi"}, {"limits": {"hugepages-2Mi": "4Mi"}}, "4Mi"),
        ({"pods": "0"}, {}, "1"),
    ]:
        (key, most), (problem,) = *hard.items(), errors(quota(hard=hard), job(box(**resources)))
        assert problem == (
            f"pods would be refused: one counts {counted} of {key!r}, and {{0}} allows all pods of namespace 'team' "
            f"{most} "
            "together; ask for less, or raise the quota"
        )


def test_a_pod_that_fits_is_none():
    for hard, resources in [
        ({f"requests.{GPU}": 2}, {"limits": {GPU: 2}}),
        ({f"limits.{GPU}": 1, f"requests.{GPU}": 2}, {"requests": {GPU: 2}}),
        ({"memory": "4Gi"}, {"requests": {"memory": "4Gi"}, "limits": {"memory": "8Gi"}}),
        ({"requests.cpu": "1500m"}, {"requests": {"cpu": "1.5"}}),
        ({"requests.storage": "1Gi", "services": 0, "count/secrets": 0}, {"limits": {"memory": "8Gi"}}),
        ({"requests.memory": "${memory}"}, {"limits": {"memory": "8Gi"}}),
        ({"requests.memory": "4Gi"}, {"limits": {"memory": "${memory}"}}),
    ]:
        assert errors(quota(hard=hard), job(box(**resources))) == [], (hard, resources)


def test_another_namespace_or_a_quota_for_some_pods_does_not_count():
    assert found(quota("other", hard={f"requests.{GPU}": 0}), job(box(limits={GPU: 1}))) == []
    scoped = obj("v1", "ResourceQuota", {"hard": {f"requests.{GPU}": 0}, "scopes": ["BestEffort"]})
    assert found(scoped, job(box(limits={GPU: 1}))) == []


def test_containers_count_as_the_scheduler_counts_them():
    for spec, is_found in [
        (pod_of(box(limits={GPU: 1}), box(limits={GPU: 1})), True),
        (pod_of(box(limits={GPU: 1}), initContainers=[box(limits={GPU: 1})]), False),
        (pod_of(box(limits={GPU: 1}), initContainers=[{**box(limits={GPU: 1}), "restartPolicy": "Always"}]), True),
    ]:
        assert bool(errors(quota(hard={f"requests.{GPU}": 1}), obj("v1", "Pod", spec))) is is_found, (spec, is_found)


def test_what_is_stated_for_the_whole_pod_counts_instead():
    made = job(box(limits={"memory": "8Gi"}), resources={"limits": {"memory": "2Gi"}})
    assert errors(quota(hard={"limits.memory": "4Gi"}), made) == []


def test_nodes_of_a_training_job_and_templates_of_a_cron_job_are_pods_too():
    asks = {"resourcesPerNode": {"limits": {GPU: 8}}}
    train = obj("trainer.kubeflow.org/v1alpha1", "TrainJob", {"trainer": asks})
    cron = obj("batch/v1", "CronJob", {"jobTemplate": {"spec": job(box(limits={GPU: 8}))["spec"]}})
    assert [finding.subject for finding in found(quota(hard={f"requests.{GPU}": 4}), train, cron)] == [2, 1]


def test_a_runtime_is_completed_by_what_uses_it():
    runtime = obj("serving.kserve.io/v1alpha1", "ServingRuntime", pod_of(box(limits={GPU: 8})))
    assert found(quota(hard={f"requests.{GPU}": 4}), runtime) == []


def test_replicas_that_are_too_many_for_the_quota_together_are_a_warning():
    assert warnings(quota(hard={f"requests.{GPU}": 2}), deployment({GPU: 1}, replicas=3)) == [
        "its 3 pods count 3 of 'requests.nvidia.com/gpu', and {0} allows all pods of namespace 'team' 2 together, so "
        "some would be refused; run fewer, or raise the quota"
    ]
    assert found(quota(hard={f"requests.{GPU}": 3}), deployment({GPU: 1}, replicas=3)) == []


def test_a_job_runs_as_many_pods_as_the_quota_lets_it():
    made = job(box(limits={GPU: 1}))
    made["spec"] |= {"parallelism": 8, "completions": 8}
    assert found(quota(hard={f"requests.{GPU}": 2}), made) == []


CLAIM = {"resources": {"requests": {"storage": "100Gi"}}, "storageClassName": "fast"}


def test_a_disk_larger_than_the_quota_is_an_error():
    for made in [
        obj("v1", "PersistentVolumeClaim", CLAIM),
        obj("apps/v1", "StatefulSet", {"volumeClaimTemplates": [{"metadata": {"name": "a"}, "spec": CLAIM}]}),
    ]:
        for key, is_found in [
            ("requests.storage", True),
            ("fast.storageclass.storage.k8s.io/requests.storage", True),
            ("slow.storageclass.storage.k8s.io/requests.storage", False),
        ]:
            assert errors(quota(hard={key: "100Gi"}), made) == [], (made, key, is_found)
            assert (
                errors(quota(hard={key: "50Gi"}), made)
                == [
                    "its volume claim would be refused: it asks for 100Gi, and {0} allows all claims of namespace "
                    "'team' 50Gi "
                    f"together by {key!r}; ask for less, or raise the quota"
                ]
                * is_found
            )


def test_a_claim_that_cannot_be_is_no_crash():
    for spec in [None, [], "a", {"resources": 3}, {"resources": {"requests": ["a"]}}]:
        claim = obj("v1", "PersistentVolumeClaim", spec)
        own = obj("apps/v1", "StatefulSet", {"volumeClaimTemplates": ["a", {"spec": spec}]})
        assert found(quota(hard={"requests.storage": "1Gi"}), claim, own) == [], spec


MIXED = Provided(gpu_offers=[GpuOffer(sharing=Sharing.none(), mig_strategy="mixed")])
RENAMED = Provided(gpu_offers=[GpuOffer(sharing=Sharing.time_slicing(replicas=2, rename_by_default=True))])


def test_gpus_that_a_quota_does_not_count_by_their_name_are_a_warning():
    for manifests, provided, missed in [
        ([job(box(limits={MIG: 1}))], (), MIG),
        ([job(box(limits={MIG: 1}))], (MIXED,), MIG),
        ([], (MIXED,), "nvidia.com/mig-<profile>"),
        ([], (RENAMED,), f"{GPU}.shared"),
    ]:
        (problem,) = warnings(quota(hard={f"requests.{GPU}": 4}), *manifests, provided=provided)
        assert problem.startswith(
            "limits GPUs as nvidia.com/gpu only, and a quota counts each name for itself, so pods "
        )
        assert problem.endswith(f"; add requests.{missed}, 0 where none is allowed"), (manifests, provided, missed)


def test_a_quota_that_counts_every_name_or_no_gpus_is_complete():
    for manifests, provided in [
        ([quota(hard={f"requests.{GPU}": 4, f"requests.{MIG}": 4}), job(box(limits={MIG: 1}))], (MIXED,)),
        ([quota(hard={f"requests.{GPU}": 4}), quota(hard={f"requests.{MIG}": 0})], (MIXED,)),
        ([quota(hard={"requests.cpu": 4}), job(box(limits={MIG: 1}))], (MIXED,)),
        ([quota("other", hard={f"requests.{GPU}": 4}), job(box(limits={MIG: 1}))], ()),
        ([quota(hard={f"requests.{GPU}.shared": 4})], (RENAMED,)),
        ([quota(hard={f"requests.{GPU}": 4})], (Provided(gpu_offers=[GpuOffer(sharing=Sharing.none())]),)),
    ]:
        assert found(*manifests, provided=provided) == [], (manifests, provided)
