"""Manifests that ask for GPUs, short enough for a table."""

from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.demand.consumers import consumers
from gpu_constructs.facts.app import Facts


def gpu(count=1, name="main", resource="nvidia.com/gpu", **more):
    return {"name": name, "resources": {"limits": {resource: count}}, **more}


def pod(*containers, **more):
    return {"containers": list(containers) or [gpu()], **more}


def template(*containers, labels=None, annotations=None, **more):
    metadata = {"labels": labels or {}, "annotations": annotations or {}}
    return {"metadata": metadata, "spec": pod(*containers, **more)}


def manifest(kind, spec, name="x", annotations=None, labels=None, namespace="ml"):
    """Return an object of a kind written as ``apps/v1 Deployment``."""
    api_version, _, kind = kind.rpartition(" ")
    metadata = {"name": name, "namespace": namespace, "annotations": annotations or {}, "labels": labels or {}}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def found(*manifests) -> list[Consumer]:
    return consumers(Facts(list(manifests)))


def one(*manifests) -> Consumer:
    (consumer,) = found(*manifests)
    return consumer


def told(consumer) -> str:
    return "; ".join(consumer.notes)


def objects_of(example):
    """Return the objects of an example of a table, with the name that it leaves out."""
    return [{"metadata": {"name": "x", "namespace": "ml"}, **one} for one in example["objects"]]
