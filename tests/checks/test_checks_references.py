"""References to objects that the app creates, declares, or lacks."""

import re

import pytest

import refusals
from app_tables import objects
from gpu_constructs import (
    EnvValue,
    External,
    GpuConstructsWarning,
    GpuNamespace,
    Ollama,
    synthesize,
)
from gpu_constructs.catalog.platforms import Kubernetes
from gpu_constructs.checks.references import references_exist
from gpu_constructs.facts.app import Facts
from tables import beside, cases

NAMING = beside(__file__, "references")["what nothing in the app makes is a warning"]
(NAMES_A_SECRET,) = objects(
    [{"kind": "Pod", "pod": {"containers": [], "imagePullSecrets": [{"name": "hugging-face"}]}}], "team"
)


def found(manifest, *external):
    return list(references_exist(Facts([manifest], [one.provides for one in external])))


@pytest.mark.parametrize("row", NAMING, ids=lambda row: row["objects"][0]["kind"])
def test_the_declaration_in_the_warning_silences_it(app, row):
    (naming,) = objects(row["objects"], "team")
    (finding,) = found(naming)
    keyword, name = re.search(r"External\(app, 'existing', (\w+)=\['(.*)'\]\)", finding.problem).groups()
    assert found(naming, External(app, "existing", **{keyword: [name]})) == []


@pytest.mark.parametrize("declared", ["hugging-face", "team/hugging-face", "team/*", "hugging-*", "*"])
def test_a_star_matches_the_rest_of_the_name(app, declared):
    assert found(NAMES_A_SECRET, External(app, "existing", secrets=[declared])) == []


@pytest.mark.parametrize("declared", ["other/hugging-face", "other/*", "other*"])
def test_a_declaration_for_another_namespace_does_not_apply(app, declared):
    assert len(found(NAMES_A_SECRET, External(app, "existing", secrets=[declared]))) == 1


@cases
def test_an_invalid_name_is_rejected(app, given, problem):
    assert refusals.problem(External, app, "existing", **given).startswith(problem)


def test_one_declaration_covers_all_external_secrets_of_an_app(app, chart):
    GpuNamespace(chart, "namespace", name="team")
    token = EnvValue.secret("hugging-face", key="token")
    Ollama(chart, "ollama", namespace="team", platform=Kubernetes(), env={"HF_TOKEN": token})
    with pytest.warns(
        GpuConstructsWarning, match=r"references Secret 'hugging-face' of namespace 'team', which this app does not"
    ):
        synthesize(app)
    External(app, "secrets", secrets=["*"])
    synthesize(app)
