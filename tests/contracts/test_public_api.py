import dataclasses
import inspect
import pydoc
import re
import tomllib
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import cdk8s
import mypy.api
import pytest
from cdk8s import Chart
from constructs import Construct

import gpu_constructs
from gpu_constructs import GpuConstructsWarning, Kubernetes, Sharing, Talos, Toleration

CDK8S = ["ApiObject", "App", "Chart", "Include", "JsonPatch", "Testing"]
OURS = [name for name in gpu_constructs.__all__ if name not in CDK8S]
PUBLIC = [getattr(gpu_constructs, name) for name in OURS]
CONSTRUCTS = {one.__name__: one for one in PUBLIC if inspect.isclass(one) and issubclass(one, Construct)}
PACKAGE = Path(gpu_constructs.__file__).parent
USE = """import gpu_constructs
from gpu_constructs import {}
chart = Chart(App(), "chart")
version: str = gpu_constructs.__version__
"""

OBJECTS = """import cdk8s_plus_27 as kplus
from gpu_constructs import (
    ApiObject, App, Chart, DcgmExporter, EnvValue, GpuAlerts, GpuNamespace, GpuWorkload, NvidiaRuntimeClass, Ollama,
    PowerLimit, VolumeClaim, Vllm,
)
chart = Chart(App(), "chart")
"""
RIGHT = """namespace = GpuNamespace(chart, "namespace")
secret = kplus.Secret(chart, "secret")
GpuWorkload(
    chart, "a", image="a:1", namespace=namespace, runtime_class=NvidiaRuntimeClass(chart, "class"),
    service_account=kplus.ServiceAccount(chart, "account"),
    image_pull_secrets=["a", secret, ApiObject(chart, "raw", api_version="v1", kind="Secret")],
    env={"A": "1", "B": EnvValue.secret(secret, key="k"), "C": kplus.EnvValue.from_value("c")},
    volumes={"/a": VolumeClaim(storage="1Gi"), "/b": secret},
)
ollama = Ollama(chart, "b", namespace=kplus.Namespace(chart, "other"))
url: str = f"{ollama.url}/v1 {ollama.service.name}" + Vllm(chart, "v", model="a/b").url
GpuAlerts(chart, "c", exporter=DcgmExporter(chart, "d"), power_limit={"pool-.*": PowerLimit(chart, "e")})
"""
WRONG = """GpuWorkload(chart, "a", image="a:1", namespace=5)
GpuWorkload(chart, "b", image="a:1", env={"A": 1})
Ollama(chart, "c", volumes={"/a": "disk"})
GpuAlerts(chart, "d", exporter="dcgm-exporter")
"""


@pytest.mark.slow
def test_type_checkers_know_every_public_name_and_which_objects_fit_keywords(tmp_path, monkeypatch, pytestconfig):
    monkeypatch.chdir(PACKAGE.parent)
    programs = {
        "use": USE.format(", ".join(gpu_constructs.__all__)),
        "typo": "from gpu_constructs import GpuOperater\n",
        "right": OBJECTS + RIGHT,
        "wrong": OBJECTS + WRONG,
    }
    for name, text in programs.items():
        (tmp_path / f"{name}.py").write_text(text)
    files = [str(tmp_path / f"{name}.py") for name in programs]
    cache = pytestconfig.cache.mkdir("mypy")
    found, _, _ = mypy.api.run(["--strict", "--cache-dir", str(cache), *files])
    errors = [line.partition(": error: ") for line in found.splitlines() if ": error: " in line]
    assert [(Path(place.partition(":")[0]).stem, text.partition(" has ")[0]) for place, _, text in errors] == [
        ("typo", 'Module "gpu_constructs"'),
        ("wrong", 'Argument "namespace" to "GpuWorkload"'),
        ("wrong", "Dict entry 0"),
        ("wrong", "Dict entry 0"),
        ("wrong", 'Argument "exporter" to "GpuAlerts"'),
    ], found
    assert 'has no attribute "GpuOperater"; maybe "GpuOperator"?' in found


def test_names_of_cdk8s_are_cdk8s_own():
    for name in CDK8S:
        assert getattr(gpu_constructs, name) is getattr(cdk8s, name)


def test_the_version_is_that_of_the_project(monkeypatch):
    project = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())["project"]
    assert gpu_constructs.__version__ == project["version"]
    # A source tree that is on the path and not installed.
    monkeypatch.setattr("sys.path", [str(PACKAGE.parent)])
    assert gpu_constructs.__version__ == project["version"]


def test_every_public_name_is_there_once_and_listed():
    assert len(set(gpu_constructs.__all__)) == len(gpu_constructs.__all__)
    assert set(gpu_constructs.__all__) <= set(dir(gpu_constructs))
    namespace = {}
    exec("from gpu_constructs import *", namespace)
    assert set(gpu_constructs.__all__) <= set(namespace)


def test_an_unknown_name_is_an_import_error_that_says_which():
    with pytest.raises(ImportError, match="GpuNamespaces"):
        exec("from gpu_constructs import GpuNamespaces", {})
    with pytest.raises(AttributeError, match="GpuNamespaces"):
        gpu_constructs.GpuNamespaces  # noqa: B018


def test_constructs_keep_their_keywords_and_defaults(snapshot):
    """Users upgrade against them. Options of pods, which several constructs share, show no default of their own."""
    lines = []
    for name, construct in CONSTRUCTS.items():
        scope, id_, *keywords = list(inspect.signature(construct.__init__).parameters.values())[1:]
        assert (scope.name, id_.name) in {("scope", "id"), ("app", "inventory")}
        assert {keyword.kind for keyword in keywords} <= {inspect.Parameter.KEYWORD_ONLY}
        lines.append(f"{name}:")
        for keyword in sorted(keywords, key=lambda keyword: keyword.name):
            is_required = keyword.default is inspect.Parameter.empty
            lines.append(f"  {keyword.name}: {'required' if is_required else repr(keyword.default)}")
    assert "\n".join(lines) + "\n" == snapshot


def description(keyword, documentation):
    """What a docstring says of a keyword, in one line."""
    found = re.search(rf"^( +){keyword}: (.*\n(?:\1 .*\n)*)", f"{documentation}\n", re.MULTILINE)
    return " ".join(found[2].split()) if found else ""


def value_of(text):
    """Return what a text in a docstring stands for; a word without quotes is itself."""
    try:
        return eval(text, {name: getattr(gpu_constructs, name) for name in OURS})
    except (NameError, SyntaxError):
        return text


def test_a_default_is_the_one_that_its_description_states():
    checked = set()
    for public in PUBLIC:
        target = public.__init__ if public in CONSTRUCTS.values() else public
        for keyword in inspect.signature(target).parameters.values() if public is not GpuConstructsWarning else ():
            said = description(keyword.name, inspect.getdoc(target) or "")
            for stated in re.findall(r"(?:``([^`]+)``|\b(True|False|[\d.]+)) by default", said):
                if keyword.default not in (None, ...):
                    checked.add((public, keyword.name))
                    assert keyword.default == value_of("".join(stated)), (public, keyword.name, said)
    assert len(checked) > 10


def test_every_construct_that_makes_pods_takes_what_places_and_sizes_them():
    placed = {"namespace", "platform", "tolerations", "node_selector", "image", "resources"}
    for construct in CONSTRUCTS.values():
        keywords = set(inspect.signature(construct.__init__).parameters)
        assert "resources" not in keywords or placed <= keywords, construct


def test_the_plugin_is_a_chart_and_the_other_constructs_go_into_one():
    charts = [name for name, construct in CONSTRUCTS.items() if issubclass(construct, Chart)]
    assert charts == ["DevicePluginChart", "NodeFeatureDiscoveryChart"]


def test_editors_and_help_show_the_keywords_of_every_public_name():
    for name in OURS:
        public = getattr(gpu_constructs, name)
        if name == "GpuConstructsWarning":
            continue
        parameters = inspect.signature(public).parameters
        # ``synth`` takes any number of apps; no name hides its keywords.
        assert inspect.Parameter.VAR_KEYWORD not in {parameter.kind for parameter in parameters.values()}, name
        assert list(parameters)[:1] != ["args"], name
        if inspect.isclass(public) and issubclass(public, Construct):
            assert list(parameters) == list(inspect.signature(public.__init__).parameters)[1:], name
            heading = pydoc.plain(pydoc.render_doc(public)).partition("\n |  \n")[0]
            assert all(f"{keyword}: " in heading for keyword in parameters), name


def test_no_public_keyword_is_typed_as_any_object():
    """A type checker would take everything, and an editor would show nothing."""
    untyped = [
        f"{name}.{member}({parameter.name})"
        for name, public in zip(OURS, PUBLIC, strict=True)
        for member, target in {"": public, **(vars(public) if inspect.isclass(public) else {})}.items()
        if not member.startswith("_") and inspect.isroutine(getattr(target, "__func__", target)) | (member == "")
        if name != "GpuConstructsWarning"
        for parameter in inspect.signature(getattr(target, "__func__", target)).parameters.values()
        if re.search(r"\bobject\b", str(parameter.annotation))
    ]
    assert untyped == []


def test_options_are_made_as_documented():
    assert Sharing.time_slicing(replicas=5).replicas == 5
    assert Toleration(key="dedicated", operator="Equal", value="ai", effect="NoSchedule").value == "ai"
    assert {Talos("1.12"), Talos(), Kubernetes()} == {Talos(version="1.12"), Kubernetes(version="1.37")}


def test_every_public_name_says_what_it_and_its_members_are_for():
    for name, public in zip(OURS, PUBLIC, strict=True):
        assert (public.__doc__ or "").strip(), name
        assert not public.__doc__.startswith(f"{public.__name__}("), name
        for member, value in vars(public).items() if inspect.isclass(public) else ():
            target = getattr(value, "__func__", value)
            if not member.startswith("_") and (inspect.isfunction(target) or isinstance(target, property)):
                assert (inspect.getdoc(target) or "").strip(), (name, member)


def test_every_keyword_of_a_construct_is_documented():
    for name, construct in CONSTRUCTS.items():
        for keyword in list(inspect.signature(construct.__init__).parameters)[1:]:
            assert description(keyword, construct.__init__.__doc__), (name, keyword)


def test_an_option_struct_is_documented_and_cannot_be_changed_after_it_was_checked():
    for struct in (public for public in PUBLIC if dataclasses.is_dataclass(public)):
        documentation = "\n".join(inspect.getdoc(base) or "" for base in struct.__mro__)
        for field in dataclasses.fields(struct):
            assert description(field.name, documentation), (struct, field.name)
        assert struct.__dataclass_params__.frozen, struct


def test_every_module_says_its_concept_in_its_first_line():
    names = [module.name for module in walk_packages([str(PACKAGE)], "gpu_constructs.")]
    assert "gpu_constructs.output.synthesis" in names
    for name in names:
        assert (import_module(name).__doc__ or "").splitlines()[0].strip(), name


def test_the_package_is_typed():
    assert (PACKAGE / "py.typed").is_file()
