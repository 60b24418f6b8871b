"""`KubeflowNotebook`: a Jupyter notebook of Kubeflow with GPUs."""

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
    """A Jupyter notebook of Kubeflow (``kubeflow.org/v1`` Notebook). Its pod keeps its GPUs until the notebook stops.

    Emits the Notebook, and a PersistentVolumeClaim for each ``VolumeClaim``. By default, this is one
    PersistentVolumeClaim for the home directory. The notebook controller of Kubeflow creates a StatefulSet of one pod
    and a Service. The path of the notebook in the web interface is ``/notebook/<namespace>/<name>/``.

    **An idle notebook also keeps its GPUs.** The notebook controller stops idle notebooks only if its variable
    ``ENABLE_CULLING`` is ``true``, which is not the default. The controller then stops a notebook that is idle for
    ``CULL_IDLE_TIME`` minutes, by default 1440 (one day). Both variables apply to all notebooks. ``stopped=True`` stops
    this notebook and keeps its disks.

    The pod satisfies the Pod Security level ``restricted``, because the images of Kubeflow run as user 1000. The root
    file system stays writable: the images write to ``/etc/s6``, and users install packages.

    Attributes:
        name: Name of the Notebook.
        namespace: Name of the namespace of the Notebook.
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
        """Create the Notebook and its disks.

        Args:
            scope: Chart, or a construct in a chart.
            id: ID of the construct. It is also the name of the objects, unless you set ``name``.
            pod: Options of the notebook's pod: GPUs, placement, resources, variables and volumes. The recipe ignores
                ``image``, ``script``, ``command``, ``args``, ``working_dir``, ``run_as_user``, ``fs_group`` and
                ``read_only_root_filesystem`` of the ``TrainingPod``. The images of Kubeflow need user 1000 and group
                100. None: a pod with one GPU.
            image: Image of the notebook server.
            home: Volume at ``/home/jovyan``: a ``VolumeClaim``, a ``Volume`` or a PersistentVolumeClaim object. None: a
                new disk of 10Gi. Files outside of mounted volumes do not survive the end of the pod.
            stopped: Whether to stop the notebook. If True, no pod runs and the GPUs are free, but the disks stay. If
                Kubeflow has stopped the notebook, False does not start the notebook again, because ``kubectl apply``
                does not remove the annotation that Kubeflow set.
            options: Options of the Notebook. ``name`` is also the name of the container and the Service, and has at
                most 52 characters. ``namespace`` must be the namespace of a Kubeflow profile. The notebook controller
                copies ``labels`` to the pod, for example for a PodDefault.

        Raises:
            GpuConstructsError: If a value is not allowed, or if the GPU profile uses ``Backend.dra_claims()``. A
                Notebook has no field for resource claims.
        """
        name = name_given(id, options)
        require_name(name)
        described = pod or TrainingPod()
        if described.allocation.by_claims:
            raise GpuConstructsError(
                "profile.backend must not be 'dra-claims' for a Notebook, because the API server would drop its "
                "claims. Use Backend.device_plugin() or Backend.dra_extended_resource()"
            )
        refuse_if(_HOME in described.volumes, "pod", f"not mount {_HOME!r}. Use home=...")
        if _STOPPED in (options.get("annotations") or {}):
            raise GpuConstructsError(f"annotations must not contain {_STOPPED!r}. Set stopped=True or remove it")
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
