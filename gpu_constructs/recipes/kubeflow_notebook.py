"""A Jupyter notebook of Kubeflow with GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from constructs import Construct

from gpu_constructs._construct import GpuObject, checked
from gpu_constructs._manifest import Manifest
from gpu_constructs._references import NamedObject
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.namespace import namespace_in
from gpu_constructs.recipes.training_pod import TrainingPod, require_name
from gpu_constructs.workload.volume import Mountable
from gpu_constructs.workload.volume_claim import VolumeClaim

NOTEBOOK_IMAGE = "ghcr.io/kubeflow/kubeflow/notebook-servers/jupyter-pytorch-cuda-full:v1.11.0"

_HOME = "/home/jovyan"
_STOPPED = "kubeflow-resource-stopped"
_USER = 1000
_GROUP = 100


class KubeflowNotebook(GpuObject):
    """A Jupyter notebook of Kubeflow (``kubeflow.org/v1`` Notebook) that holds GPUs while it runs.

    Emits the Notebook and, for each ``VolumeClaim``, a PersistentVolumeClaim: one for the home directory by default.
    Kubeflow's controller makes a StatefulSet of one pod of it and a Service, and serves it under
    ``/notebook/<namespace>/<name>/``.

    **It holds its GPUs day and night.** Kubeflow stops idle notebooks only where its controller runs with
    ``ENABLE_CULLING=true``, which is off by default, and then after ``CULL_IDLE_TIME`` minutes, 1440 by default: a day.
    Both are of the controller, for all notebooks. ``stopped=True`` stops this one and keeps its disks.

    The pod reaches the Pod Security level ``restricted``: Kubeflow's images run as user 1000. Their root file system
    stays writable, since they write to ``/etc/s6`` and packages are installed by hand.

    Attributes:
        name: Name of the Notebook.
        namespace: Name of its namespace.
        api_object: The Notebook.

    Source:
        kubeflow/kubeflow:components/notebook-controller/controllers/notebook_controller.go and culling_controller.go;
        kubeflow/kubeflow:components/example-notebook-servers/base/Dockerfile
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        pod: TrainingPod | None = None,
        image: str = NOTEBOOK_IMAGE,
        home: Mountable | None = None,
        stopped: bool = False,
        name: str | None = None,
        namespace: str | NamedObject | None = None,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        ignore_rules: Sequence[str] = (),
    ) -> None:
        """Make the notebook.

        Args:
            scope: A chart, or a construct in one.
            id: Construct id, and the name unless ``name`` says otherwise.
            pod: What it shares with trainings: GPUs, where it runs, sizes, variables and volumes. What trainings run
                (image, script, command, args) is left out, and so are their user, group and read-only root, since
                Kubeflow's images want user 1000 and group 100. None: one GPU.
            image: Of the notebook server.
            home: What is mounted at ``/home/jovyan``: a ``VolumeClaim``, a ``Volume`` or a PersistentVolumeClaim
                object. None: a disk of 10Gi of its own. Without a disk, work would be lost with the pod.
            stopped: Whether no pod runs, so that the GPUs are free; the disks stay. A notebook that Kubeflow or its
                dashboard has stopped stays so when this is False, since ``kubectl apply`` takes away only what it set.
            name: Name of the Notebook, its container and its Service; at most 52 characters.
            namespace: A name, a ``GpuNamespace`` or a cdk8s-plus Namespace; Kubeflow expects that of a profile. None:
                the chart's namespace, else ``default``.
            labels: Further labels; the controller copies them to the pod, where a PodDefault may look for them.
            annotations: Of the Notebook.
            ignore_rules: Codes of rules, like ``R13``, that ``synth`` does not hold against this object.

        Raises:
            GpuConstructsError: A value above is not allowed, or the profile makes claims, for which the schema of a
                Notebook has no place.
        """
        name = id if name is None else name
        require_name(name)
        described = pod or TrainingPod()
        if described.allocation.by_claims:
            raise GpuConstructsError(
                "pods of a Notebook have no place for claims, which the API server would drop; use "
                "Backend.device_plugin() or Backend.dra_extended_resource() for it"
            )
        if _HOME in described.volumes:
            raise GpuConstructsError(f"pod must not mount {_HOME!r}; pass home=... for it")
        if _STOPPED in (annotations or {}):
            raise GpuConstructsError(f"annotations must not hold {_STOPPED!r}; pass stopped=True or leave it out")
        own = replace(
            described,
            image=image,
            script=None,
            command=(),
            args=(),
            working_dir=None,
            volumes={_HOME: VolumeClaim(storage="10Gi") if home is None else home, **described.volumes},
            run_as_user=_USER,
            fs_group=_GROUP,
            read_only_root_filesystem=False,
        )
        where = namespace_in(scope, namespace)
        rendered = own.render(name=name, namespace=where, component="notebook", container=name)
        said = {**(own.annotations(annotations, ignore_rules) or {}), **({_STOPPED: "true"} if stopped else {})}
        metadata = rendered.metadata(name, where, labels, said or None)
        super().__init__(scope, id)
        self.name = name
        self.namespace = where
        self.provides = own.allocation.profile.assumes
        for child, manifest in rendered.beside.items():
            Manifest(self, child, manifest)
        body = {"apiVersion": "kubeflow.org/v1", "kind": "Notebook", "metadata": metadata}
        Manifest(self, "Default", {**body, "spec": {"template": {"spec": rendered.spec}}})
