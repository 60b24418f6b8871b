"""`KatibExperiment`: a Katib experiment that searches for the best parameters of a training."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Unpack

from constructs import Construct

from gpu_constructs.cluster.namespace import namespace_in
from gpu_constructs.errors import GpuConstructsError, refuse_if
from gpu_constructs.kube import fields
from gpu_constructs.kube.annotations import COLLECTOR_INJECTION as COLLECTOR_INJECTION
from gpu_constructs.recipes.katib_parameter import KatibParameter, combinations, require_finite
from gpu_constructs.recipes.pytorch_training import CONTAINERS, TrainingJob
from gpu_constructs.recipes.training_pod import TrainingObject, TrainingPod, require_name
from gpu_constructs.tree.construct import checked
from gpu_constructs.workload.options import ObjectOptions, name_given

Algorithm = Literal[
    "random", "grid", "tpe", "multivariate-tpe", "bayesianoptimization", "hyperband", "cmaes", "sobol", "pbt"
]

_LONGEST_NAME = 40
_PLACEHOLDER = fields.regex(r"\$\{trialParameters\.(.+?)\}")
_NAME = fields.regex(r"[A-Za-z0-9][-A-Za-z0-9_.]*\Z")
_SHELLS = ("sh", "bash")
"""Names of shells that Katib recognizes as the first word of a command. It does not recognize ``/bin/sh``."""

_WRAPPING_COLLECTORS = ("StdOut", "File", "TensorFlowEvent")
_MOST_FAILED = 3


class KatibExperiment(TrainingObject):
    """A Katib experiment (``kubeflow.org/v1beta1``) that runs trainings on GPUs with different parameters.

    Emits the Experiment, and the objects that the pods of the trials need: a ConfigMap for the script,
    PersistentVolumeClaims, and a ResourceClaimTemplate. A trial is one training: a Job or a PyTorchJob whose pods have
    the options of a ``TrainingPod``. In ``args``, ``command`` and ``env`` of the ``TrainingPod``,
    ``${trialParameters.<name>}`` stands for the value of a parameter. The pods never restart. An annotation disables
    the Istio sidecar of the pods, because the sidecar would never end.

    In a pod of each trial, Katib adds a container that reads metrics from the output of the training, as lines such as
    ``loss=0.25``. For this, the namespace must have the label
    ``katib.kubeflow.org/metrics-collector-injection=enabled`` (``COLLECTOR_INJECTION``). The added container has no
    security context, so the namespace can enforce at most the Pod Security level ``baseline``. A trial fails if its
    process ends before the added container finds this process, so each trial must run for a few seconds.

    Attributes:
        name: Name of the Experiment.
        namespace: Name of the namespace of the Experiment.
        api_object: The Experiment.

    Source: kubeflow/katib@v0.19.0:pkg/webhook/v1beta1/pod/utils.go and
    pkg/webhook/v1beta1/experiment/validator/validator.go
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        trial: TrainingPod,
        parameters: Mapping[str, KatibParameter],
        objective_metric_name: str,
        objective_type: Literal["minimize", "maximize"] = "minimize",
        goal: int | float | None = None,
        additional_metric_names: Sequence[str] = (),
        algorithm_name: Algorithm = "random",
        algorithm_settings: Mapping[str, str | int | float] | None = None,
        early_stopping: Literal["medianstop"] | None = None,
        parallel_trial_count: int = 1,
        max_trial_count: int = 12,
        max_failed_trial_count: int | None = None,
        resume_policy: Literal["Never", "LongRunning", "FromVolume"] | None = None,
        retain: bool = False,
        metrics_collector_spec: Mapping[str, Any] | None = None,
        api: Literal["Job", "PyTorchJob"] = "Job",
        num_nodes: int = 1,
        nproc_per_node: int | None = None,
        active_deadline_seconds: int | None = None,
        **options: Unpack[ObjectOptions],
    ) -> None:
        """Create the Experiment and the objects that its trials need.

        Args:
            scope: Chart, or a construct in a chart.
            id: ID of the construct. It is also the name of the objects, unless you set ``name``.
            trial: Pod of a trial, for example with ``args=["--rate=${trialParameters.rate}"]``. Katib 0.19 joins the
                words of the command with spaces and runs the result with ``sh -c``. The library therefore rejects a
                word that the shell would split. Put such a word in a script in the image, or use ``command=["sh", "-c",
                "..."]``.
            parameters: Parameters that differ between trials, by name. ``trial`` must use each parameter.
            objective_metric_name: Name of the metric to optimize. Trials print the metric on its own line, for example
                ``loss=0.25``.
            objective_type: Whether the best value of the metric is the lowest (``minimize``) or the highest
                (``maximize``).
            goal: Value of the metric at which the experiment ends. None: the experiment runs all trials.
            additional_metric_names: Names of other metrics to collect.
            algorithm_name: Algorithm that selects the parameters of the next trial. ``hyperband`` needs ``r_l`` and
                ``resource_name`` in ``algorithm_settings``. ``cmaes`` needs at least two parameters that are ``int`` or
                ``double``. ``grid`` needs a step for each ``double``.
            algorithm_settings: Settings of the algorithm, by the names in the documentation of Katib.
            early_stopping: Algorithm that stops trials early. ``medianstop`` stops a trial whose metric is worse than
                the median of the completed trials, which frees its GPUs. None: trials run to their end.
            parallel_trial_count: Number of trials that run at once. The default is 1, not 3 as in Katib, because each
                trial needs its own GPUs.
            max_trial_count: Number of trials after which the experiment ends.
            max_failed_trial_count: Number of failed trials after which the experiment ends. None: 3, or
                ``max_trial_count`` if that is less. Katib has no limit by default.
            resume_policy: With ``LongRunning`` or ``FromVolume``, you can add trials to an ended experiment.
                ``LongRunning`` keeps the pod of the algorithm, and ``FromVolume`` keeps the state of the algorithm in a
                volume. None: ``Never``, the default of Katib.
            retain: Whether Katib keeps the Jobs of ended trials, with their logs.
            metrics_collector_spec: Metrics collector, with the fields of the Katib API. None: a collector that reads
                the output of trials.
            api: Kind of a trial: ``Job``, or ``PyTorchJob`` for several pods.
            num_nodes: Number of pods of each trial.
            nproc_per_node: Number of processes of each pod. None: one process for each GPU. With MIG devices, one
                process for each pod.
            active_deadline_seconds: Time after which Kubernetes stops a trial, in seconds. None: never.
            options: Options of the Experiment. ``name`` has at most 40 characters, the limit of Katib.

        Raises:
            GpuConstructsError: If a value is not allowed, if ``trial`` lacks a parameter or uses an unknown one, or if
                a shell would split a word of the command.
        """
        name = name_given(id, options)
        require_name(name, longest=_LONGEST_NAME)
        objective = _objective(objective_metric_name, objective_type, goal, additional_metric_names)
        counts = _counts(parallel_trial_count, max_trial_count, max_failed_trial_count)
        algorithm = _algorithm(algorithm_name, algorithm_settings or {}, parameters, max_trial_count)
        job = TrainingJob(
            api=api,
            pod=trial,
            num_nodes=num_nodes,
            nproc_per_node=nproc_per_node,
            restart_policy="Never",
            # The pod does not restart, because Katib starts another trial instead.
            backoff_limit=0,
            active_deadline_seconds=active_deadline_seconds,
        )
        where = namespace_in(scope, options.get("namespace"))
        rendered = job.rendered(name, where, pods_at_once=parallel_trial_count * num_nodes)
        metadata = rendered.described(trial.request, options)
        container = rendered.spec["containers"][0]
        _check_placeholders(parameters, container, trial.script)
        collector = (metrics_collector_spec or {}).get("collector") or {}
        if collector.get("kind", "StdOut") in _WRAPPING_COLLECTORS:
            container = _ready_for_a_shell(container, parameters)
            rendered = replace(rendered, spec={**rendered.spec, "containers": [container]})
        trial_spec = job.manifests(rendered, {"labels": {}})["Default"]
        spec = {
            **counts,
            "algorithm": algorithm,
            "earlyStopping": {"algorithmName": early_stopping} if early_stopping else None,
            "metricsCollectorSpec": dict(metrics_collector_spec) if metrics_collector_spec else None,
            "objective": objective,
            "parameters": [one.to_manifest(key) for key, one in parameters.items()],
            "resumePolicy": resume_policy,
            "trialTemplate": {
                "primaryContainerName": CONTAINERS[api],
                "retain": retain or None,
                "trialParameters": [{"name": key, "reference": key} for key in parameters],
                "trialSpec": {key: value for key, value in trial_spec.items() if key != "metadata"},
            },
        }
        body = {"apiVersion": "kubeflow.org/v1beta1", "kind": "Experiment", "metadata": metadata}
        super().__init__(scope, id)
        self._emit(trial, metadata, {**rendered.beside, "Default": {**body, "spec": spec}})


def _objective(name: str, kind: str, goal: float | None, others: Sequence[str]) -> dict[str, Any]:
    if not name or name in others:
        raise GpuConstructsError(
            f"objective_metric_name must be a name that is not in additional_metric_names, got {name!r}"
        )
    require_finite("goal", goal)
    return {"additionalMetricNames": list(others) or None, "goal": goal, "objectiveMetricName": name, "type": kind}


def _counts(parallel: int, most: int, most_failed: int | None) -> dict[str, int]:
    fields.whole_number("max_trial_count", most, minimum=1)
    fields.whole_number(
        "parallel_trial_count", parallel, minimum=1, maximum=most, way_out="no more than max_trial_count"
    )
    failed = min(_MOST_FAILED, most) if most_failed is None else most_failed
    fields.whole_number(
        "max_failed_trial_count", failed, minimum=0, maximum=most, way_out="no more than max_trial_count"
    )
    return {"parallelTrialCount": parallel, "maxTrialCount": most, "maxFailedTrialCount": failed}


def _algorithm(
    name: Algorithm,
    settings: Mapping[str, str | int | float],
    parameters: Mapping[str, KatibParameter],
    max_trial_count: int,
) -> dict[str, Any]:
    """Return the field ``spec.algorithm`` of the Experiment.

    Raises:
        GpuConstructsError: Katib would reject the algorithm, its settings, or the parameters for it.
    """
    if name == "grid":
        most = combinations(parameters)
        if most is None:
            raise GpuConstructsError("algorithm_name 'grid' needs a step for each double. Pass double(step=...)")
        if max_trial_count > most:
            raise GpuConstructsError(
                f"max_trial_count must be at most the {most} combinations that 'grid' can try, got {max_trial_count}"
            )
    if name == "cmaes" and sum(one.is_ordered for one in parameters.values()) < 2:
        raise GpuConstructsError("algorithm_name 'cmaes' needs two parameters or more that are double or int")
    if name == "hyperband":
        for key in ("r_l", "resource_name"):
            refuse_if(key not in settings, "algorithm_settings", f"contain {key!r} for algorithm_name 'hyperband'")
        if settings["resource_name"] not in parameters:
            raise GpuConstructsError(
                f"algorithm_settings['resource_name'] must be one of parameters, got {settings['resource_name']!r}"
            )
    for key, value in settings.items():
        if not isinstance(value, str):
            require_finite(f"algorithm_settings[{key!r}]", value)
    made = [{"name": key, "value": str(value)} for key, value in settings.items()]
    return {"algorithmName": name, "algorithmSettings": made or None}


def _check_placeholders(parameters: Mapping[str, KatibParameter], container: Any, script: str | None) -> None:
    """Raise an error if the trial does not use a parameter of the experiment, or uses an unknown parameter.

    Args:
        parameters: Parameters of the experiment by name.
        container: Container of the trial, as in a manifest.
        script: Script of the trial. It must not contain ``${trialParameters...}``, because Katib replaces this text
            only in the pod, and not in the ConfigMap of the script. None: the trial has no script.
    """
    if not parameters:
        raise GpuConstructsError("parameters must contain at least one parameter, got none")
    for name in parameters:
        refuse_if(not _NAME.match(name), "parameters key", "be letters, digits, '-', '_' or '.'", name)
    if script is not None and _PLACEHOLDER.search(script):
        raise GpuConstructsError(
            "trial.script must not contain ${trialParameters...}, because Katib replaces it only in the pod. Pass it "
            f"as args=['--{next(iter(parameters))}=${{trialParameters.{next(iter(parameters))}}}'] and read sys.argv"
        )
    used = _placeholders_in(container)
    for name in [name for name in used if name not in parameters]:
        raise GpuConstructsError(
            f"trial must use parameters of the experiment only, got {name!r}"
            f"{fields.did_you_mean(name, list(parameters))}"
        )
    for name in [name for name in parameters if name not in used]:
        raise GpuConstructsError(
            f"parameters[{name!r}] is used nowhere in trial. Pass it on: "
            f"TrainingPod(args=['--{name}=${{trialParameters.{name}}}'])"
        )


def _placeholders_in(container: Any) -> list[str]:
    texts = [*(container["command"] or ()), *(container["args"] or ())]
    texts += [str(variable.get("value", "")) for variable in container["env"] or ()]
    return [match for text in texts for match in _PLACEHOLDER.findall(text)]


def _needs_quotes(text: object) -> bool:
    return shlex.quote(str(text)) != str(text)


def _ready_for_a_shell(container: Any, parameters: Mapping[str, KatibParameter]) -> Any:
    """Return a copy of a trial's container whose command has the same effect when Katib runs it with ``sh -c``.

    Raises:
        GpuConstructsError: The shell would split an argument or the value of a parameter. Also raised if ``command``
            starts a shell with other arguments than ``-c`` and one text.
    """
    words = [*(container["command"] or ()), *(container["args"] or ())]
    used = {name for word in words for name in _PLACEHOLDER.findall(word)}
    for name in parameters.keys() & used:
        for value in filter(_needs_quotes, parameters[name].values):
            raise GpuConstructsError(
                f"parameters[{name!r}] must have no value that a shell would split, got {value!r}. Katib runs the "
                "trial with 'sh -c'. Use a plain word, and map this word to the value in the script"
            )
    if container["command"] and words[0] in _SHELLS and words[1:2] in ([], ["-c"]):
        if len(words) != 3:
            raise GpuConstructsError(f"trial.command must be {words[0]!r}, '-c' and one text, got {words!r}")
        shell, _, text = words
        # Katib appends "1>file 2>&1 && echo completed ..." to the text. The redirection must apply to the whole text.
        return {**container, "command": [shell, "-c", f"{shell} -c {shlex.quote(text)}"], "args": None}
    for word in words:
        if _needs_quotes(_PLACEHOLDER.sub("x", word)):
            raise GpuConstructsError(
                f"trial must contain no argument that a shell would split, got {word!r}. Katib runs the trial with 'sh "
                "-c'. Put the argument in the script, or in command=['sh', '-c', '...']"
            )
    return container
