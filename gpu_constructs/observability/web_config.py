"""TLS and passwords in front of an exporter's ``/metrics``, and what its scraper needs to get through."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gpu_constructs import _fields, _references
from gpu_constructs._config_map import config_map
from gpu_constructs._references import NamedObject
from gpu_constructs._yaml import yaml_text
from gpu_constructs.errors import GpuConstructsError, ShortErrors

WEB_CONFIG_KEY = "web-config.yaml"
"""Key of the object that holds the exporter's web configuration."""

TLS_DIRECTORY = "/etc/gpu-constructs/tls"

_BCRYPT = re.compile(r"\$2[aby]\$(?:0[4-9]|[12][0-9]|3[01])\$[./A-Za-z0-9]{53}\Z")
_KEY = re.compile(r"(?!\.\Z|\.\.)[-._a-zA-Z0-9]{1,253}\Z")

ClientAuthType = Literal[
    "NoClientCert",
    "RequestClientCert",
    "RequireAnyClientCert",
    "VerifyClientCertIfGiven",
    "RequireAndVerifyClientCert",
]
_WITH_CA = ("VerifyClientCertIfGiven", "RequireAndVerifyClientCert")
_REQUIRED = ("RequireAnyClientCert", "RequireAndVerifyClientCert")


@dataclass(frozen=True, kw_only=True)
class Tls(metaclass=ShortErrors):
    """A certificate for the exporter, from a Secret that exists, such as one that cert-manager keeps.

    None is made here: a certificate generated at synth would be another one at each synth.

    Attributes:
        secret: The Secret, by name or as an object, in the exporter's namespace.
        cert_filename: Its key with the certificate.
        key_filename: Its key with the private key.
        ca_filename: Its key with the authority's certificate, by which the scraper knows the exporter and the
            exporter its clients. None where there is none, as with a public authority: the scraper then goes by
            those it knows itself.
        client_auth_type: Whether clients must show a certificate. With a ``Require…`` the kubelet cannot ask
            for ``/health``, since it has none: probes then only connect.
        server_name: The name in the certificate; None is ``<name>.<namespace>.svc``, the Service's.
        insecure_skip_verify: Whether the scraper takes any certificate. False.
        client_secret: Secret with the certificate and key (``tls.crt``, ``tls.key``) that the scraper shows.

    Raises:
        GpuConstructsError: A Secret that is none, or a key that cannot be one.

    Source: prometheus/exporter-toolkit, docs/web-configuration.md; NVIDIA/dcgm-exporter@4.5.3-4.8.2:
    deployment/values.yaml, tlsServerConfig.
    """

    secret: str | NamedObject
    cert_filename: str = "tls.crt"
    key_filename: str = "tls.key"
    ca_filename: str | None = "ca.crt"
    client_auth_type: ClientAuthType = "NoClientCert"
    server_name: str | None = None
    insecure_skip_verify: bool = False
    client_secret: str | NamedObject | None = None

    def __post_init__(self) -> None:
        _fields.members(self, "tls")
        for name in ("cert_filename", "key_filename", "ca_filename"):
            if getattr(self, name) is not None:
                _key(f"tls.{name}", getattr(self, name))
        if self.ca_filename is None and self.client_auth_type in _WITH_CA:
            raise GpuConstructsError(
                f"tls.ca_filename is required with client_auth_type={self.client_auth_type!r}, which holds clients' "
                "certificates against it; got None"
            )
        object.__setattr__(self, "secret", _references.name_of("tls.secret", self.secret, "Secret"))
        if self.client_secret is not None:
            client = _references.name_of("tls.client_secret", self.client_secret, "Secret")
            object.__setattr__(self, "client_secret", client)
        if self.server_name is not None:
            _fields.dns_subdomain("tls.server_name", self.server_name)

    @property
    def requires_client_certificate(self) -> bool:
        """Whether a client without a certificate is turned away."""
        return self.client_auth_type in _REQUIRED


class _Silent(ShortErrors):
    """Refuses what comes without a keyword, and does not show it."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if args:
            raise GpuConstructsError(
                "BasicAuth takes everything by keyword; got something without one, which is not shown here; "
                "pass users=..."
            )
        return super().__call__(*args, **kwargs)


@dataclass(frozen=True, kw_only=True)
class BasicAuth(metaclass=_Silent):
    """Passwords for the exporter's ``/metrics``.

    Attributes:
        users: The users, each with the bcrypt hash of its password, as ``htpasswd -nBC 10 "" | tr -d ':'``
            prints it. Never the password itself: a hash made at synth would be another one at each synth.
        secret: Secret with a user's name and password, by which the scraper gets in; in the scrape object's
            namespace. It can be left out only where no scrape object is made.
        username_key: Its key with the name.
        password_key: Its key with the password.

    Raises:
        GpuConstructsError: No user, a hash that is none, or a key that cannot be one.

    Source: prometheus/exporter-toolkit, docs/web-configuration.md.
    """

    users: Mapping[str, str] = field(repr=False)
    secret: str | NamedObject | None = None
    username_key: str = "username"
    password_key: str = "password"

    _IS_SECRET = True

    def __post_init__(self) -> None:
        # First, since an error about the type would show what may be a password.
        _users(self.users)
        _fields.members(self, "basic_auth")
        if not self.users:
            raise GpuConstructsError("basic_auth.users must hold at least one user; got {}; leave basic_auth out")
        for user, hashed in self.users.items():
            if not user or not user.isprintable():
                raise GpuConstructsError(f"basic_auth.users must be named in printable letters; got {user!r}")
            if ":" in user:
                raise GpuConstructsError(
                    f"basic_auth.users must be named without ':'; got one that begins with {user.partition(':')[0]!r}; "
                    "write the name as the key and the hash as its value"
                )
            if not _BCRYPT.match(hashed):
                raise GpuConstructsError(
                    f"basic_auth.users[{user!r}] must be a bcrypt hash like '$2y$10$...'; got something else, which is "
                    "not shown here; make it with: htpasswd -nBC 10 ''"
                )
        object.__setattr__(self, "users", dict(self.users))
        for name in ("username_key", "password_key"):
            _key(f"basic_auth.{name}", getattr(self, name))
        if self.secret is not None:
            object.__setattr__(self, "secret", _references.name_of("basic_auth.secret", self.secret, "Secret"))


def _users(given: object) -> None:
    if not isinstance(given, Mapping) or not all(isinstance(text, str) for pair in given.items() for text in pair):
        raise GpuConstructsError(
            "basic_auth.users must be a dict of names and bcrypt hashes; got something else, which is not shown here"
        )


def _key(field: str, got: str) -> None:
    if not _KEY.match(got):
        raise GpuConstructsError(f"{field} must be letters, digits, '-', '_' or '.', no path; got {got!r}")


def web_config(tls: Tls | None, basic_auth: BasicAuth | None) -> str | None:
    """Write the exporter's web configuration; None without one."""
    if tls is None and basic_auth is None:
        return None
    content: dict[str, Any] = {}
    if tls is not None:
        server = {
            "cert_file": f"{TLS_DIRECTORY}/{tls.cert_filename}",
            "key_file": f"{TLS_DIRECTORY}/{tls.key_filename}",
        }
        if tls.client_auth_type != "NoClientCert":
            server["client_auth_type"] = tls.client_auth_type
        if tls.client_auth_type in _WITH_CA:
            server["client_ca_file"] = f"{TLS_DIRECTORY}/{tls.ca_filename}"
        content["tls_server_config"] = server
    if basic_auth is not None:
        content["basic_auth_users"] = dict(basic_auth.users)
    return yaml_text(content)


def web_config_object(metadata: dict[str, Any], text: str, basic_auth: BasicAuth | None) -> dict[str, Any]:
    """Give the object that holds the web configuration: a Secret where there are passwords' hashes in it."""
    data = {WEB_CONFIG_KEY: text}
    if basic_auth is None:
        return config_map(metadata, data)
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "stringData": data}


def probe(
    path: str, port: str, tls: Tls | None, basic_auth: BasicAuth | None, *, period: int, failures: int
) -> dict[str, Any]:
    """Give a probe that asks for a path, or only connects where the kubelet would not get in."""
    # The kubelet has no password and no certificate to show.
    can_ask = basic_auth is None and not (tls and tls.requires_client_certificate)
    question = {"path": path, "port": port, **({"scheme": "HTTPS"} if tls else {})}
    return {
        **({"httpGet": question} if can_ask else {"tcpSocket": {"port": port}}),
        "periodSeconds": period,
        # The default second is too short on a node whose CPUs are all busy.
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    }


def scrape_access(tls: Tls | None, basic_auth: BasicAuth | None, *, server_name: str) -> dict[str, Any]:
    """Give the fields of a scrape endpoint that get it through, the same ones for both operators.

    Raises:
        GpuConstructsError: There is no Secret to get through with.
    """
    fields: dict[str, Any] = {}
    if tls is not None:
        verified: dict[str, Any] = {"serverName": tls.server_name or server_name}
        if tls.ca_filename is not None:
            verified["ca"] = {"secret": {"name": tls.secret, "key": tls.ca_filename}}
        fields["scheme"] = "https"
        fields["tlsConfig"] = {"insecureSkipVerify": True} if tls.insecure_skip_verify else verified
        if tls.client_secret is not None:
            fields["tlsConfig"]["cert"] = {"secret": {"name": tls.client_secret, "key": "tls.crt"}}
            fields["tlsConfig"]["keySecret"] = {"name": tls.client_secret, "key": "tls.key"}
        elif tls.requires_client_certificate:
            raise GpuConstructsError(
                f"tls.client_secret is required with client_auth_type={tls.client_auth_type!r}, since the scraper must "
                "show a certificate; got None; name a Secret, or pass scrape='none'"
            )
    if basic_auth is not None:
        if basic_auth.secret is None:
            raise GpuConstructsError(
                "basic_auth.secret is required for the scrape object, which must log in; got None; name a Secret with "
                f"the keys {basic_auth.username_key!r} and {basic_auth.password_key!r}, or pass scrape='none'"
            )
        fields["basicAuth"] = {
            "username": {"name": basic_auth.secret, "key": basic_auth.username_key},
            "password": {"name": basic_auth.secret, "key": basic_auth.password_key},
        }
    return fields
