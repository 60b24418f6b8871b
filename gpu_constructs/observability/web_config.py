"""TLS and passwords in front of an exporter's ``/metrics``, and what its scraper needs to get through."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, ClassVar, Literal

from gpu_constructs.errors import GpuConstructsError, ShortErrors
from gpu_constructs.kube import fields, references
from gpu_constructs.kube.config_map import config_map, sha256
from gpu_constructs.kube.references import NamedObject
from gpu_constructs.kube.yaml_text import yaml_text

Volumes = dict[str, tuple[dict[str, Any], dict[str, Any]]]
"""Source and mount of each volume."""

WEB_CONFIG_CHECKSUM = "gpu-constructs/web-config-sha256"
"""Annotation of the pods that restarts them when the web configuration changes."""

_FILE = "web-config.yaml"
_WEB_CONFIG_DIRECTORY = "/etc/gpu-constructs/web"
_TLS_DIRECTORY = "/etc/gpu-constructs/tls"

_BCRYPT = re.compile(r"\$2[aby]\$(?:0[4-9]|[12][0-9]|3[01])\$[./A-Za-z0-9]{53}\Z")
file_name = fields.matching(r"(?!\.\Z|\.\.)[-._a-zA-Z0-9]{1,253}\Z", "be letters, digits, '-', '_' or '.', no path")
"""Raise unless a text can be the key of a ConfigMap or a Secret."""

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
class Tls(fields.Options):
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

    _CHECKS: ClassVar[fields.Checks] = {
        "cert_filename": file_name,
        "key_filename": file_name,
        "ca_filename": file_name,
        "server_name": fields.dns_subdomain,
    }

    _KEPT: ClassVar[fields.Kept] = {
        "secret": partial(references.name_of, "tls.secret", kind="Secret"),
        "client_secret": partial(references.name_of, "tls.client_secret", kind="Secret"),
    }

    def _conflicts(self) -> Iterable[fields.Conflict]:
        yield (
            self.ca_filename is None and self.client_auth_type in _WITH_CA,
            f"tls.ca_filename is required with client_auth_type={self.client_auth_type!r}, which holds clients' "
            "certificates against it; got None",
        )

    @property
    def requires_client_certificate(self) -> bool:
        """Whether a client without a certificate is turned away."""
        return self.client_auth_type in _REQUIRED


class _Silent(ShortErrors):
    """A metaclass that rejects positional arguments without showing them, because one may be a password."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if args:
            raise GpuConstructsError(
                "BasicAuth takes everything by keyword; got something without one, which is not shown here; "
                "pass users=..."
            )
        return super().__call__(*args, **kwargs)


@dataclass(frozen=True, kw_only=True)
class BasicAuth(fields.Options, metaclass=_Silent):
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
    _CHECKS: ClassVar[fields.Checks] = {"username_key": file_name, "password_key": file_name}
    _KEPT: ClassVar[fields.Kept] = {
        "users": dict,
        "secret": partial(references.name_of, "basic_auth.secret", kind="Secret"),
    }

    def __post_init__(self) -> None:
        # First, since an error about the type would show what may be a password.
        _users(self.users)
        super().__post_init__()

    def _conflicts(self) -> Iterable[fields.Conflict]:
        yield not self.users, "basic_auth.users must hold at least one user; got {}; leave basic_auth out"
        for user, hashed in self.users.items():
            yield (
                not user or not user.isprintable(),
                f"basic_auth.users must be named in printable letters; got {user!r}",
            )
            yield (
                ":" in user,
                f"basic_auth.users must be named without ':'; got one that begins with {user.partition(':')[0]!r}; "
                "write the name as the key and the hash as its value",
            )
            yield (
                not _BCRYPT.match(hashed),
                f"basic_auth.users[{user!r}] must be a bcrypt hash like '$2y$10$...'; got something else, which is "
                "not shown here; make it with: htpasswd -nBC 10 ''",
            )


def _users(given: object) -> None:
    if not isinstance(given, Mapping) or not all(isinstance(text, str) for pair in given.items() for text in pair):
        raise GpuConstructsError(
            "basic_auth.users must be a dict of names and bcrypt hashes; got something else, which is not shown here"
        )


@dataclass(frozen=True)
class Guard:
    """What stands in front of an exporter's metrics.

    Attributes:
        tls: Certificate of the exporter.
        basic_auth: Passwords of the exporter.
    """

    tls: Tls | None
    basic_auth: BasicAuth | None

    @cached_property
    def text(self) -> str | None:
        """Web configuration of the exporter, or None without one."""
        content: dict[str, Any] = {}
        if self.tls is not None:
            kind = self.tls.client_auth_type
            files = {"cert_file": self.tls.cert_filename, "key_file": self.tls.key_filename}
            if kind in _WITH_CA:
                files["client_ca_file"] = str(self.tls.ca_filename)
            server = {key: f"{_TLS_DIRECTORY}/{name}" for key, name in files.items()}
            content["tls_server_config"] = server if kind == "NoClientCert" else {**server, "client_auth_type": kind}
        if self.basic_auth is not None:
            content["basic_auth_users"] = dict(self.basic_auth.users)
        return yaml_text(content) if content else None

    @property
    def path(self) -> str | None:
        """Path of the web configuration in the container, or None without one."""
        return f"{_WEB_CONFIG_DIRECTORY}/{_FILE}" if self.text else None

    @property
    def checksums(self) -> dict[str, str]:
        """Annotation of the pods that restarts them when the web configuration changes."""
        return {WEB_CONFIG_CHECKSUM: sha256(self.text)} if self.text else {}

    def manifests(self, metadata: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Return the object with the web configuration, by construct id: a Secret if it has hashes of passwords."""
        if self.text is None:
            return {}
        named = {**metadata, "name": f"{metadata['name']}-web-config"}
        if self.basic_auth is None:
            return {"web-config": config_map(named, {_FILE: self.text})}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": named, "type": "Opaque"}
        return {"web-config": {**secret, "stringData": {_FILE: self.text}}}

    def volumes(self, name: str) -> Volumes:
        """Return the volumes with the web configuration and the certificate of an exporter of this name."""
        volumes: Volumes = {}
        if self.text is not None:
            config = f"{name}-web-config"
            secret: dict[str, Any] = {"secret": {"secretName": config, "defaultMode": 0o440}}
            source = secret if self.basic_auth else {"configMap": {"name": config}}
            volumes["web-config"] = (source, {"mountPath": _WEB_CONFIG_DIRECTORY, "readOnly": True})
        if self.tls is not None:
            source = {"secret": {"secretName": self.tls.secret, "defaultMode": 0o440}}
            volumes["tls"] = (source, {"mountPath": _TLS_DIRECTORY, "readOnly": True})
        return volumes

    def probe(self, path: str, port: str, *, period: int, failures: int) -> dict[str, Any]:
        """Return a probe that asks for a path, or only connects if the kubelet would not get in."""
        # The kubelet has no password and no certificate to show.
        can_ask = self.basic_auth is None and not (self.tls and self.tls.requires_client_certificate)
        question = {"path": path, "port": port, **({"scheme": "HTTPS"} if self.tls else {})}
        return {
            **({"httpGet": question} if can_ask else {"tcpSocket": {"port": port}}),
            "periodSeconds": period,
            # The default second is too short on a node whose CPUs are all busy.
            "timeoutSeconds": 5,
            "failureThreshold": failures,
        }

    def access(self, server_name: str) -> dict[str, Any]:
        """Return the fields of a scrape endpoint that let the scraper in, the same ones for both operators.

        Raises:
            GpuConstructsError: There is no Secret to get through with.
        """
        return {
            **(_certificate(self.tls, server_name) if self.tls else {}),
            **(_login(self.basic_auth) if self.basic_auth else {}),
        }


def _certificate(tls: Tls, server_name: str) -> dict[str, Any]:
    config: dict[str, Any] = {"insecureSkipVerify": True}
    if not tls.insecure_skip_verify:
        config = {"serverName": tls.server_name or server_name}
        if tls.ca_filename is not None:
            config["ca"] = {"secret": {"name": tls.secret, "key": tls.ca_filename}}
    if tls.client_secret is not None:
        config["cert"] = {"secret": {"name": tls.client_secret, "key": "tls.crt"}}
        config["keySecret"] = {"name": tls.client_secret, "key": "tls.key"}
    elif tls.requires_client_certificate:
        raise GpuConstructsError(
            f"tls.client_secret is required with client_auth_type={tls.client_auth_type!r}, since the scraper must "
            "show a certificate; got None; name a Secret, or pass scrape='none'"
        )
    return {"scheme": "https", "tlsConfig": config}


def _login(auth: BasicAuth) -> dict[str, Any]:
    if auth.secret is None:
        raise GpuConstructsError(
            "basic_auth.secret is required for the scrape object, which must log in; got None; name a Secret with "
            f"the keys {auth.username_key!r} and {auth.password_key!r}, or pass scrape='none'"
        )
    keys = {"username": auth.username_key, "password": auth.password_key}
    return {"basicAuth": {word: {"name": auth.secret, "key": key} for word, key in keys.items()}}
