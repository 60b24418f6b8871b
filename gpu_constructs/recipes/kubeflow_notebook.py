"""A Jupyter notebook of Kubeflow with GPUs."""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack

from constructs import Construct

from gpu_constructs.cluster.namespace import namespace_in
from gpu_constructs.errors import GpuConstructsError, refuse_if
from gpu_constructs.kube.volume import Mountable, VolumeClaim
from gpu_constructs.recipes.training_pod import TrainingObject, TrainingPod, require_name
from gpu_constructs.tree.construct import checked
from gpu_constructs.workload.options import ObjectOptions, name_given

NOTEBOOK_IMAGE = "ghcr.io/kubeflow/kubeflow/notebook-servers/jupyter-pytorch-cuda-full:v1.11.0"

_HOME = "/home/jovyan"
_STOPPED = "kubeflow-resource-stopped"
_USER = 1000
_GROUP = 100


class KubeflowNotebook(TrainingObject):
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
        **options: Unpack[ObjectOptions],
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
            options: ``name`` is that of the container and the Service too, and has at most 52 characters. Kubeflow
                expects the ``namespace`` of a profile. The controller copies ``labels`` to the pod, where a PodDefault
                may look for them.

        Raises:
            GpuConstructsError: A value above is not allowed, or the profile makes claims, for which the schema of a
                Notebook has no place.
        """
        name = name_given(id, options)
        require_name(name)
        described = pod or TrainingPod()
        if described.allocation.by_claims:
            raise GpuConstructsError(
                "pods of a Notebook have no place for claims, which the API server would drop; use "
                "Backend.device_plugin() or Backend.dra_extended_resource() for it"
            )
        refuse_if(_HOME in described.volumes, "pod", f"not mount {_HOME!r}; pass home=... for it")
        if _STOPPED in (options.get("annotations") or {}):
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
        where = namespace_in(scope, options.get("namespace"))
        rendered = own.render(name=name, namespace=where, component="notebook", container=name)
        metadata = rendered.described(own.request, options, {_STOPPED: "true"} if stopped else {})
        body = {"apiVersion": "kubeflow.org/v1", "kind": "Notebook", "metadata": metadata}
        super().__init__(scope, id)
        self._emit(
            own, metadata, {**rendered.beside, "Default": {**body, "spec": {"template": {"spec": rendered.spec}}}}
        )
