import pytest
import yaml
from cdk8s import ApiObject

from gpu_constructs import GpuConstructsError, _fields
from gpu_constructs.observability.scrape import Scrape, scrape_manifest
from gpu_constructs.observability.web_config import BasicAuth, Tls, scrape_access, web_config
from schemas import schema_errors

LETTERS = "abcdefghijklmnopqrstuv"
HASH = f"$2y$10${LETTERS}0123456789./ABCDEFGHIJKLMNOPQRS"
USERS = {"prometheus": HASH}
FOLDER = "/etc/gpu-constructs/tls"
FILES = {"cert_file": f"{FOLDER}/tls.crt", "key_file": f"{FOLDER}/tls.key"}


def refusal(make, *given, **options):
    with pytest.raises(GpuConstructsError) as refused:
        make(*given, **options)
    return str(refused.value)


# What exporter-toolkit reads.


def test_without_options_there_is_no_web_configuration():
    assert web_config(None, None) is None


@pytest.mark.parametrize(
    ("options", "server"),
    [
        ({}, FILES),
        (
            {"cert_filename": "c.pem", "key_filename": "k.pem"},
            {"cert_file": f"{FOLDER}/c.pem", "key_file": f"{FOLDER}/k.pem"},
        ),
        ({"client_auth_type": "RequestClientCert"}, {**FILES, "client_auth_type": "RequestClientCert"}),
        ({"client_auth_type": "RequireAnyClientCert"}, {**FILES, "client_auth_type": "RequireAnyClientCert"}),
        (
            {"client_auth_type": "VerifyClientCertIfGiven"},
            {**FILES, "client_auth_type": "VerifyClientCertIfGiven", "client_ca_file": f"{FOLDER}/ca.crt"},
        ),
        (
            {"client_auth_type": "RequireAndVerifyClientCert", "ca_filename": "root.pem"},
            {**FILES, "client_auth_type": "RequireAndVerifyClientCert", "client_ca_file": f"{FOLDER}/root.pem"},
        ),
        ({"server_name": "gpu.example.com", "insecure_skip_verify": True, "client_secret": "client"}, FILES),
    ],
    ids=str,
)
def test_a_certificate_is_written_as_exporter_toolkit_reads_it(options, server):
    assert yaml.safe_load(web_config(Tls(secret="tls", **options), None)) == {"tls_server_config": server}


@pytest.mark.parametrize("user", ["prometheus", "yes", "null", "5", "1e3", "~", "a b", "é", "#x", "*x", "'"])
def test_each_user_is_read_back_as_it_was_given(user):
    assert yaml.safe_load(web_config(None, BasicAuth(users={user: HASH}))) == {"basic_auth_users": {user: HASH}}


def test_certificate_and_passwords_stand_side_by_side():
    read = yaml.safe_load(web_config(Tls(secret="tls"), BasicAuth(users=USERS)))
    assert read == {"tls_server_config": FILES, "basic_auth_users": USERS}


# What the scraper gets.


def in_secret(name, key):
    return {"name": name, "key": key}


CA = {"secret": in_secret("tls", "ca.crt")}


@pytest.mark.parametrize(
    ("options", "tls_config"),
    [
        ({}, {"ca": CA, "serverName": "x.gpu.svc"}),
        ({"server_name": "gpu.example.com"}, {"ca": CA, "serverName": "gpu.example.com"}),
        ({"ca_filename": "root.pem"}, {"ca": {"secret": in_secret("tls", "root.pem")}, "serverName": "x.gpu.svc"}),
        ({"insecure_skip_verify": True}, {"insecureSkipVerify": True}),
        (
            {"client_secret": "client", "client_auth_type": "RequireAndVerifyClientCert"},
            {
                "ca": CA,
                "serverName": "x.gpu.svc",
                "cert": {"secret": in_secret("client", "tls.crt")},
                "keySecret": in_secret("client", "tls.key"),
            },
        ),
    ],
    ids=str,
)
def test_the_scraper_knows_the_exporter_by_its_certificate(options, tls_config):
    access = scrape_access(Tls(secret="tls", **options), None, server_name="x.gpu.svc")
    assert access == {"scheme": "https", "tlsConfig": tls_config}


def test_the_scraper_logs_in_with_a_secret():
    auth = BasicAuth(users=USERS, secret="login", username_key="user", password_key="pass")
    assert scrape_access(None, auth, server_name="x") == {
        "basicAuth": {"username": in_secret("login", "user"), "password": in_secret("login", "pass")}
    }


def test_without_options_the_scraper_needs_nothing():
    assert scrape_access(None, None, server_name="x") == {}


@pytest.mark.parametrize("kind", ["ServiceMonitor", "PodMonitor", "VMServiceScrape", "VMPodScrape"])
@pytest.mark.parametrize("skip", [True, False])
def test_both_operators_read_the_same_fields(kind, skip):
    tls = Tls(secret="tls", client_secret="client", insecure_skip_verify=skip)
    access = scrape_access(tls, BasicAuth(users=USERS, secret="login"), server_name="x.gpu.svc")
    manifest = scrape_manifest(
        Scrape(kind=kind),
        name="x",
        namespace="gpu",
        labels={},
        selector_labels={"app": "x"},
        port="metrics",
        collect_interval_seconds=30,
        access=access,
    )
    assert schema_errors(manifest) == []


@pytest.mark.parametrize("kind", ["RequireAnyClientCert", "RequireAndVerifyClientCert"])
def test_a_scraper_that_must_show_a_certificate_needs_one(kind):
    tls = Tls(secret="tls", client_auth_type=kind)
    assert tls.requires_client_certificate
    assert refusal(scrape_access, tls, None, server_name="x") == (
        f"tls.client_secret is required with client_auth_type={kind!r}, since the scraper must show a certificate; "
        "got None; name a Secret, or pass scrape='none'"
    )


@pytest.mark.parametrize("kind", ["NoClientCert", "RequestClientCert", "VerifyClientCertIfGiven"])
def test_a_scraper_that_may_come_without_a_certificate_does(kind):
    tls = Tls(secret="tls", client_auth_type=kind)
    assert not tls.requires_client_certificate
    assert "cert" not in scrape_access(tls, None, server_name="x")["tlsConfig"]


def test_a_scraper_that_must_log_in_needs_a_secret():
    auth = BasicAuth(users=USERS, username_key="user")
    assert refusal(scrape_access, None, auth, server_name="x") == (
        "basic_auth.secret is required for the scrape object, which must log in; got None; name a Secret with the keys "
        "'user' and 'password', or pass scrape='none'"
    )


def test_secrets_are_named_or_handed_over(chart):
    made = ApiObject(chart, "secret", api_version="v1", kind="Secret")
    assert Tls(secret=made, client_secret=made) == Tls(secret=made.name, client_secret=made.name)
    assert BasicAuth(users=USERS, secret=made).secret == made.name


# What is refused.

NAME = "must be a DNS subdomain (DNS labels joined by '.', at most 253 characters)"
KEY = "must be letters, digits, '-', '_' or '.', no path"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "secret is required by Tls"),
        ({"secret": 5}, "tls.secret must be the name of a Secret or a Secret object; got int"),
        ({"secret": "My_Tls"}, f"tls.secret {NAME}; got 'My_Tls'"),
        ({"secret": "t", "client_secret": ""}, f"tls.client_secret {NAME}; got ''"),
        ({"secret": "t", "cert_filename": "a/b"}, f"tls.cert_filename {KEY}; got 'a/b'"),
        ({"secret": "t", "key_filename": ""}, f"tls.key_filename {KEY}; got ''"),
        ({"secret": "t", "ca_filename": ".."}, f"tls.ca_filename {KEY}; got '..'"),
        ({"secret": "t", "server_name": "*.example.com"}, f"tls.server_name {NAME}; got '*.example.com'"),
        (
            {"secret": "t", "client_auth_type": "RequireClientCert"},
            "tls.client_auth_type must be one of 'NoClientCert', 'RequestClientCert', 'RequireAnyClientCert', "
            "'VerifyClientCertIfGiven', 'RequireAndVerifyClientCert'; got 'RequireClientCert' (did you mean "
            "'RequireAnyClientCert'?)",
        ),
        ({"secret": "t", "insecure_skip_verify": "no"}, "tls.insecure_skip_verify must be bool; got str: 'no'"),
    ],
    ids=str,
)
def test_a_certificate_that_cannot_be_is_refused(given, problem):
    assert refusal(Tls, **given) == problem


NO_HASH = (
    "basic_auth.users['a'] must be a bcrypt hash like '$2y$10$...'; got something else, which is not shown here; make "
    "it with: htpasswd -nBC 10 ''"
)
NO_USERS = "basic_auth.users must be a dict of names and bcrypt hashes; got something else, which is not shown here"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "users is required by BasicAuth"),
        ({"users": {}}, "basic_auth.users must hold at least one user; got {}; leave basic_auth out"),
        ({"users": {"a": "hunter2"}}, NO_HASH),
        ({"users": {"a": HASH[:-1]}}, NO_HASH),
        ({"users": {"a": HASH + "\n"}}, NO_HASH),
        ({"users": {"a": HASH.replace("$2y$", "$2x$")}}, NO_HASH),
        ({"users": {"a": HASH.replace("$10$", "$03$")}}, NO_HASH),
        ({"users": {"a": HASH.replace("$10$", "$32$")}}, NO_HASH),
        ({"users": "a:hunter2"}, NO_USERS),
        ({"users": None}, NO_USERS),
        ({"users": {"a": b"hunter2"}}, NO_USERS),
        ({"users": {"a": "hunter2", 5: HASH}}, NO_USERS),
        ({"users": ["hunter2"]}, NO_USERS),
        (
            {"users": {"a:hunter2": HASH}},
            "basic_auth.users must be named without ':'; got one that begins with 'a'; write the name as the key and "
            "the hash as its value",
        ),
        ({"users": {"": HASH}}, "basic_auth.users must be named in printable letters; got ''"),
        ({"users": {"a\n": HASH}}, "basic_auth.users must be named in printable letters; got 'a\\n'"),
        (
            {"users": USERS, "secret": 5},
            "basic_auth.secret must be the name of a Secret or a Secret object; got int",
        ),
        ({"users": USERS, "password_key": "a b"}, f"basic_auth.password_key {KEY}; got 'a b'"),
        ({"users": USERS, "username_key": ""}, f"basic_auth.username_key {KEY}; got ''"),
        ({"users": USERS, "user_key": "x"}, "user_key is no member of BasicAuth (did you mean 'username_key'?)"),
    ],
    ids=str,
)
def test_passwords_that_cannot_be_are_refused_and_never_shown(given, problem):
    found = refusal(BasicAuth, **given)
    assert found == problem
    assert "hunter2" not in found


@pytest.mark.parametrize("start", ["$2a$04$", "$2b$12$", "$2y$31$"])
def test_every_bcrypt_that_the_exporter_reads_is_taken(start):
    hashed = start + HASH[7:]
    assert BasicAuth(users={"a": hashed}).users == {"a": hashed}


def test_hashes_are_not_in_the_representation():
    assert LETTERS not in repr(BasicAuth(users=USERS))


def test_users_changed_afterwards_change_nothing():
    users = dict(USERS)
    auth = BasicAuth(users=users)
    users["other"] = "hunter2"
    assert auth.users == USERS


def test_a_password_given_where_an_object_belongs_is_not_shown():
    with pytest.raises(GpuConstructsError) as refused:
        _fields.of_type("basic_auth", {"admin": "hunter2"}, BasicAuth | None)
    assert "hunter2" not in str(refused.value)
    assert str(refused.value).endswith("not shown here, since it may hold a secret")
