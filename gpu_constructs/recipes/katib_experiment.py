"""A search for the best parameters of a training, by Katib."""

from __future__ import annotations

import re
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
_PLACEHOLDER = re.compile(r"\$\{trialParameters\.(.+?)\}")
_NAME = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_.]*\Z")
_SHELLS = ("sh", "bash")
"""Which Katib knows by these names alone."""

_WRAPPING_COLLECTORS = ("StdOut", "File", "TensorFlowEvent")
_MOST_FAILED = 3


class KatibExperiment(TrainingObject):
    """A Katib experiment (``kubeflow.org/v1beta1``) whose trials hold GPUs.

    Emits the Experiment, and what the trials' pods need beside it: the ConfigMap of the script, disks, a
    ResourceClaimTemplate. A trial is a Job or a PyTorchJob of one description of a training; its parameters stand in it
    as ``${trialParameters.<name>}``, in ``args``, ``command`` or ``env``. Its pods never restart by themselves, and
    tell Istio to leave its proxy out, which would never end.

    Katib adds its collector to a trial's pod only in a namespace with the label ``COLLECTOR_INJECTION``, and gives that
    container no security context, so the namespace can be ``baseline`` at most. The collector reads lines like
    ``loss=0.25``; a trial that ends before the collector has found its process counts as failed, so let each run for
    some seconds.

    Attributes:
        name: Name of the Experiment.
        namespace: Name of its namespace.
        api_object: The Experiment.

    Source:
        kubeflow/katib@v0.19.0:pkg/webhook/v1beta1/pod/utils.go and
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
        """Make the experiment.

        Args:
            scope: A chart, or a construct in one.
            id: Construct id, and the name unless ``name`` says otherwise.
            trial: What a trial runs, with which GPUs: ``args=["--rate=${trialParameters.rate}"]``. Katib 0.19 joins the
                words of its command with blanks and gives them to ``sh -c``, so a word that a shell would take apart is
                refused; say such a thing in the script, or as ``command=["sh", "-c", "..."]``. That text runs in a
                shell within Katib's, which redirects the output of the last command only.
            parameters: What is varied, each used in ``trial`` under its name.
            objective_metric_name: The metric that trials print, as ``loss=0.25`` on a line of its own.
            objective_type: ``minimize`` or ``maximize``.
            goal: Value at which the experiment ends. None: it makes all trials.
            additional_metric_names: Metrics that are collected besides.
            algorithm_name: How the next parameters are chosen. ``hyperband`` needs ``r_l`` and ``resource_name`` in
                ``algorithm_settings``, ``cmaes`` two ints or doubles, ``grid`` a step for each double.
            algorithm_settings: Of the algorithm, by Katib's names.
            early_stopping: ``medianstop`` ends trials that are worse than the median, and so frees their GPUs.
            parallel_trial_count: Trials at once. 1, where Katib has 3: each holds its own GPUs.
            max_trial_count: Trials in all.
            max_failed_trial_count: Failures after which the experiment ends. None: 3, or all of fewer trials; Katib by
                itself sets no bound.
            resume_policy: What is kept for trials added later. None: ``Never``, Katib's own default.
            retain: Whether the Jobs of ended trials stay, with their logs.
            metrics_collector_spec: Of the collector, as Katib writes it. None: it reads what trials print.
            api: ``Job``, or ``PyTorchJob`` for trials of several nodes.
            num_nodes: Pods of each trial.
            nproc_per_node: Processes of each pod. None: one for each GPU, of MIG devices one.
            active_deadline_seconds: When a trial is stopped at the latest. None: never.
            options: ``name`` has at most 40 characters, which Katib allows.

        Raises:
            GpuConstructsError: A value above is not allowed, a parameter is used that is not there or the other way
                round, or a word of the command needs quotes.
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
            # Katib makes another trial instead.
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
            f"objective_metric_name must be a name that is not in additional_metric_names; got {name!r}"
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
    """Return the algorithm as Katib writes it; what its own service would refuse only at run time is refused here."""
    if name == "grid":
        most = combinations(parameters)
        if most is None:
            raise GpuConstructsError("algorithm_name 'grid' needs a step for each double; pass double(step=...)")
        if max_trial_count > most:
            raise GpuConstructsError(
                f"max_trial_count must be at most the {most} combinations that 'grid' can try; got {max_trial_count}"
            )
    if name == "cmaes" and sum(one.is_ordered for one in parameters.values()) < 2:
        raise GpuConstructsError("algorithm_name 'cmaes' needs two parameters or more that are double or int")
    if name == "hyperband":
        for key in ("r_l", "resource_name"):
            refuse_if(key not in settings, "algorithm_settings", f"hold {key!r} for algorithm_name 'hyperband'")
        if settings["resource_name"] not in parameters:
            raise GpuConstructsError(
                f"algorithm_settings['resource_name'] must be one of parameters; got {settings['resource_name']!r}"
            )
    for key, value in settings.items():
        if not isinstance(value, str):
            require_finite(f"algorithm_settings[{key!r}]", value)
    made = [{"name": key, "value": str(value)} for key, value in settings.items()]
    return {"algorithmName": name, "algorithmSettings": made or None}


def _check_placeholders(parameters: Mapping[str, KatibParameter], container: Any, script: str | None) -> None:
    """Raise unless each parameter is used in the trial and each placeholder has a parameter."""
    if not parameters:
        raise GpuConstructsError("parameters must hold at least one; got none")
    for name in parameters:
        refuse_if(not _NAME.match(name), "parameters key", "be letters, digits, '-', '_' or '.'", name)
    if script is not None and _PLACEHOLDER.search(script):
        raise GpuConstructsError(
            "trial.script must hold no ${trialParameters...}, which Katib fills in the pod only; pass it as "
            f"args=['--{next(iter(parameters))}=${{trialParameters.{next(iter(parameters))}}}'] and read sys.argv"
        )
    used = _placeholders_in(container)
    for name in [name for name in used if name not in parameters]:
        raise GpuConstructsError(
            f"trial must use parameters of the experiment only; got {name!r}"
            f"{fields.did_you_mean(name, list(parameters))}"
        )
    for name in [name for name in parameters if name not in used]:
        raise GpuConstructsError(
            f"parameters[{name!r}] is used nowhere in trial; pass it on: "
            f"TrainingPod(args=['--{name}=${{trialParameters.{name}}}'])"
        )


def _placeholders_in(container: Any) -> list[str]:
    texts = [*(container["command"] or ()), *(container["args"] or ())]
    texts += [str(variable.get("value", "")) for variable in container["env"] or ()]
    return [match for text in texts for match in _PLACEHOLDER.findall(text)]


def _needs_quotes(text: object) -> bool:
    return shlex.quote(str(text)) != str(text)


def _ready_for_a_shell(container: Any, parameters: Mapping[str, KatibParameter]) -> Any:
    """Return the container whose words come through Katib's ``sh -c`` as they are.

    Raises:
        GpuConstructsError: A word or value that would be taken apart, or a shell without a text of its own.
    """
    words = [*(container["command"] or ()), *(container["args"] or ())]
    used = {name for word in words for name in _PLACEHOLDER.findall(word)}
    for name in parameters.keys() & used:
        for value in filter(_needs_quotes, parameters[name].values):
            raise GpuConstructsError(
                f"parameters[{name!r}] must have no value that a shell takes apart, since Katib gives it to "
                f"'sh -c' without quotes; got {value!r}; map a plain word to it in the script"
            )
    if container["command"] and words[0] in _SHELLS and words[1:2] in ([], ["-c"]):
        if len(words) != 3:
            raise GpuConstructsError(
                f"trial.command must be {words[0]!r}, '-c' and one text, since Katib takes all behind '-c' for the "
                f"text; got {words!r}"
            )
        shell, _, text = words
        # Katib appends "1>file 2>&1 && echo completed ..." to the text, which must be about all of it.
        return {**container, "command": [shell, "-c", f"{shell} -c {shlex.quote(text)}"], "args": None}
    for word in words:
        if _needs_quotes(_PLACEHOLDER.sub("x", word)):
            raise GpuConstructsError(
                f"trial must have no word that a shell takes apart, since Katib gives them to 'sh -c' without quotes; "
                f"got {word!r}; say it in the script, or as command=['sh', '-c', '...']"
            )
    return container
