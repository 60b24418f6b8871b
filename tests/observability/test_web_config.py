import pytest
import yaml
from cdk8s import ApiObject

from gpu_constructs import GpuConstructsError
from gpu_constructs.kube import fields
from gpu_constructs.observability.scrape import Scrape, scrape_manifest
from gpu_constructs.observability.web_config import BasicAuth, Guard, Tls
from refusals import refusal
from schemas import schema_errors
from tables import beside

LETTERS = "abcdefghijklmnopqrstuv"
HASH = f"$2y$10${LETTERS}0123456789./ABCDEFGHIJKLMNOPQRS"
USERS = {"prometheus": HASH}


# Content of the web configuration.


SERVED = beside(__file__, "web_config")["served"]


def test_a_certificate_is_written_as_exporter_toolkit_reads_it(snapshot):
    files = [yaml.safe_load(Guard(Tls(secret="tls", **options), None).text) for options in SERVED]
    assert [{"given": options, **file} for options, file in zip(SERVED, files, strict=True)] == snapshot


def test_each_user_is_read_back_as_it_was_given():
    for user in ["prometheus", "yes", "null", "5", "1e3", "~", "a b", "é", "#x", "*x", "'"]:
        assert yaml.safe_load(Guard(None, BasicAuth(users={user: HASH})).text) == {"basic_auth_users": {user: HASH}}, (
            user
        )


# Settings of the scraper.


def in_secret(name, key):
    return {"name": name, "key": key}


KNOWN = beside(__file__, "web_config")["known"]


def test_the_scraper_knows_the_exporter_by_its_certificate(snapshot):
    told = [Guard(Tls(secret="tls", **options), None).access("x.gpu.svc") for options in KNOWN]
    assert [{"given": options, **access} for options, access in zip(KNOWN, told, strict=True)] == snapshot


def test_the_scraper_logs_in_with_a_secret():
    auth = BasicAuth(users=USERS, secret="login", username_key="user", password_key="pass")
    assert Guard(None, auth).access("x") == {
        "basicAuth": {"username": in_secret("login", "user"), "password": in_secret("login", "pass")}
    }


def test_both_operators_read_the_same_fields():
    for skip in [True, False]:
        for kind in ["ServiceMonitor", "PodMonitor", "VMServiceScrape", "VMPodScrape"]:
            tls = Tls(secret="tls", client_secret="client", insecure_skip_verify=skip)
            access = Guard(tls, BasicAuth(users=USERS, secret="login")).access("x.gpu.svc")
            manifest = scrape_manifest(
                Scrape(kind=kind),
                metadata={"name": "x", "namespace": "gpu", "labels": {}},
                selector_labels={"app": "x"},
                port="metrics",
                collect_interval_seconds=30,
                access=access,
            )
            assert schema_errors(manifest) == [], kind


def test_a_required_client_certificate_must_have_a_secret():
    for kind in ["RequireAnyClientCert", "RequireAndVerifyClientCert"]:
        tls = Tls(secret="tls", client_auth_type=kind)
        assert tls.requires_client_certificate, kind
        assert refusal(Guard(tls, None).access, "x") == (
            f"tls.client_secret must have a value with client_auth_type={kind!r}, because the scraper needs a "
            "certificate, "
            "got None. Name a Secret, or pass scrape='none'"
        ), kind


def test_secrets_are_names_or_objects(chart):
    made = ApiObject(chart, "secret", api_version="v1", kind="Secret")
    assert Tls(secret=made, client_secret=made) == Tls(secret=made.name, client_secret=made.name)
    assert BasicAuth(users=USERS, secret=made).secret == made.name


# Errors.


def test_an_invalid_certificate_is_rejected(refused):
    refused(Tls)


def test_invalid_passwords_are_rejected_and_never_shown(refused):
    refused(BasicAuth)


def test_every_bcrypt_format_of_the_exporter_is_accepted():
    for start in ["$2a$04$", "$2b$12$", "$2y$31$"]:
        hashed = start + HASH[7:]
        assert BasicAuth(users={"a": hashed}).users == {"a": hashed}, start


def test_hashes_are_not_in_the_representation():
    assert LETTERS not in repr(BasicAuth(users=USERS))


def test_a_positional_password_is_not_shown():
    with pytest.raises(GpuConstructsError) as refused:
        fields.of_type("basic_auth", {"admin": "hunter2"}, BasicAuth | None)
    assert "hunter2" not in str(refused.value)
    assert str(refused.value).endswith("not shown, because it can contain a secret")
