"""The library recognizes credentials in plain text by name and by format, and accepts everything else.

The samples are put together here, so that no scanner takes this file for a leak.
"""

import re

import dist
import documents
from gpu_constructs import not_a_secret
from gpu_constructs.kube.credentials import in_arguments, in_values, in_variable
from refusals import refusal

RANDOM = "Zk3" + "a1B2" * 12
FORMS = {
    "Hugging Face": "hf_" + RANDOM,
    "OpenAI": "sk-" + "proj-" + RANDOM,
    "GitHub": "ghp_" + RANDOM,
    "GitHub (fine-grained)": "github_pat_" + RANDOM,
    "GitLab": "glpat-" + RANDOM,
    "Slack token": "xoxb-" + RANDOM,
    "Slack webhook": "https://hooks.slack.com/services/" + "T01234567/B01234567/" + RANDOM,
    "AWS": "AKIA" + "Z0" * 8,
    "NVIDIA": "nvapi-" + RANDOM,
    "Google": "AIza" + RANDOM[:35],
    "JSON Web Token": "eyJ" + RANDOM + ".eyJ" + RANDOM + "." + RANDOM,
    "private key": "-----BEGIN " + "OPENSSH PRIVATE KEY-----\nb3BlbnNzaA",
    "Stripe": "sk_live_" + RANDOM,
    "bearer in small letters": "authorization=bearer " + RANDOM,
    "bearer": "Authorization: Bearer " + RANDOM,
    "Docker login": '{"auths": {"nvcr.io": {"auth": "' + RANDOM + '"}}}',
    "URL with a password": "postgresql://mlflow:hunter2@db:5432/mlflow",
    "URL with a password and no user": "redis://:hunter2@cache:6379",
    "URL with a token": "https://example.com/hook?id=1&access_token=" + RANDOM,
}


def test_a_value_in_a_known_format_is_a_credential_under_any_name():
    for kind in FORMS:
        assert in_variable("SETTING", FORMS[kind]), kind
        assert in_variable("SCRIPT", f"curl -H '{FORMS[kind]}' https://example.com"), kind


def test_a_name_that_ends_like_a_credential_reveals_one(rows):
    for (name,) in rows:
        assert in_variable(name, "hunter2-and-more"), name


def test_a_value_that_only_resembles_a_credential_is_accepted(rows):
    for name, value in rows:
        assert in_variable(name, value) is None, (name, value)


def test_credentials_are_found_in_flags_and_assignments(rows):
    for words, places in rows:
        assert [index for index, _ in in_arguments(words)] == places, (words, places)


def test_values_of_any_chart_are_searched_by_key_variable_and_argument(expected):
    values = {
        "grafana": {"adminPassword": "hunter2", "admin": {"existingSecret": "grafana", "passwordKey": "password"}},
        "devicePlugin": {"env": [{"name": "HF_TOKEN", "value": "hunter2"}, {"name": "A", "value": "b"}]},
        "driver": {"secretEnv": "driver-env", "licensingConfig": {"secretName": "licence"}},
        "toolkit": {"args": ["--api-key=hunter2"], "imagePullSecrets": ["registry"], "token": None, "n": 4},
        "pullSecret": "registry",
        "clientSecret": "name-of-an-object",
    }
    assert [path for path, _ in in_values(values)] == expected


def test_recursive_and_shared_values_are_read_once():
    shared = {"adminPassword": "hunter2"}
    for _ in range(40):
        shared = {"a": [shared] * 9}
    shared["itself"] = shared
    assert len(list(in_values(shared))) == 1


def test_not_a_secret_makes_a_text_acceptable():
    text = "public-demo-of-this-test"
    assert in_variable("DEMO_TOKEN", text)
    assert not_a_secret(text) is text
    assert in_variable("DEMO_TOKEN", text) is None
    assert list(in_arguments(["--token", text])) == []
    assert list(in_arguments([f"--token={text}"])) == []
    assert list(in_arguments([not_a_secret("--token=another-of-this-test")])) == []


def test_not_a_secret_accepts_only_text():
    assert refusal(not_a_secret, 7).startswith("text must be str, got int")


def test_an_error_does_not_show_the_credential():
    found = in_variable("DB_PASSWORD", "hunter2")
    assert str(found.refusal("env['DB_PASSWORD']", "read it from a Secret")) == (
        "env['DB_PASSWORD'] must not be a credential in plain text, got 7 characters (its name says so). Read it from "
        "a Secret, or use not_a_secret(...) if the value is public"
    )


PAGE = dist.ROOT / "docs" / "security.md"


def test_the_page_lists_what_is_recognized_and_what_is_not():
    rows = documents.table(PAGE, "the library recognizes a credential by")
    for name in re.findall(r"`(\w+)`", rows[0][1]):
        assert in_variable(name, "hunter2"), name
    accepted = PAGE.read_text(encoding="utf-8").split("names and values as credentials:")[1].split("- Harmless")[0]
    for name in re.findall(r"`(\w+)`", accepted):
        assert not list(in_values({name: "hunter2"})), name


def test_the_program_of_the_page_runs(tmp_path, monkeypatch, recwarn):
    monkeypatch.chdir(tmp_path)
    (program,) = documents.blocks(PAGE, "python", "Credentials")
    exec(compile(program.text, "page.py", "exec"), {"__name__": "__main__"})
    assert list(tmp_path.rglob("*.k8s.yaml"))
    assert not [str(warning.message) for warning in recwarn if "R31" in str(warning.message)]
