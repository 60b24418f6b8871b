from capacity_manifests import gpu, manifest, one, template, told

PARAMETERS = [
    {"name": "gpus", "parameterType": "int", "feasibleSpace": {"min": "1", "max": "4"}},
    {"name": "nodes", "parameterType": "categorical", "feasibleSpace": {"list": ["1", "8", "2"]}},
    {"name": "lr", "parameterType": "double", "feasibleSpace": {"max": "0.1"}},
]
NAMES = [{"name": name, "reference": reference} for name, reference in (("g", "gpus"), ("n", "nodes"), ("lr", "lr"))]


def tried(amount, parallelism=1, parameters=PARAMETERS, names=NAMES):
    spec = {"parallelism": parallelism, "template": template(gpu(amount, command=["--lr=${trialParameters.lr}"]))}
    held = {"apiVersion": "batch/v1", "kind": "Job", "spec": spec}
    trial = {"trialParameters": names, "trialSpec": held}
    return one(manifest("kubeflow.org/v1beta1 Experiment", {"parameters": parameters, "trialTemplate": trial}))


def test_a_count_that_is_a_parameter_is_counted_at_its_greatest():
    consumer = tried("${trialParameters.g}", "${trialParameters.n}")
    assert (consumer.asks, consumer.pods_each) == ({"nvidia.com/gpu": 4}, 8)
    assert "trialParameters.g is counted as its greatest, 4" in told(consumer)
    assert "trialParameters.n is counted as its greatest, 8" in told(consumer)
    assert "lr" not in told(consumer)


def test_a_count_of_its_own_needs_no_parameter():
    consumer = tried(2)
    assert (consumer.asks, consumer.notes) == ({"nvidia.com/gpu": 2}, ())


def test_a_parameter_that_nobody_declares_counts_as_one():
    consumer = tried("${trialParameters.unknown}", "${trialParameters.unknown}")
    assert (consumer.asks, consumer.pods_each) == ({"nvidia.com/gpu": 1}, 1)


def test_rubbish_is_no_parameter():
    for rubbish in (None, "x", 3, [None, {"name": []}, {"name": "gpus", "feasibleSpace": "x"}]):
        assert tried("${trialParameters.g}", parameters=rubbish).asks == {"nvidia.com/gpu": 1}
        assert tried("${trialParameters.g}", names=rubbish).asks == {"nvidia.com/gpu": 1}
