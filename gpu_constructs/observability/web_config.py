"""TLS and passwords for the metrics of an exporter, and the settings that its scraper needs for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property, partial
from typing import Any, ClassVar, Literal

from gpu_constructs.errors import GpuConstructsError, ShortErrors
from gpu_constructs.kube import fields, references
from gpu_constructs.kube.config_map import config_map, sha256
from gpu_constructs.kube.references import NamedObject
from gpu_constructs.kube.yaml_text import yaml_text
from gpu_constructs.records import dataclass, field, regex

Volumes = dict[str, tuple[dict[str, Any], dict[str, Any]]]
"""Source and mount of each volume in a pod, by name of the volume."""

WEB_CONFIG_CHECKSUM = "gpu-constructs/web-config-sha256"
"""Annotation of the pods with a checksum of the web configuration. If the checksum changes, the pods restart."""

_FILE = "web-config.yaml"
_WEB_CONFIG_DIRECTORY = "/etc/gpu-constructs/web"
_TLS_DIRECTORY = "/etc/gpu-constructs/tls"

_BCRYPT = regex(r"\$2[aby]\$(?:0[4-9]|[12][0-9]|3[01])\$[./A-Za-z0-9]{53}\Z")
file_name = fields.matching(r"(?!\.\Z|\.\.)[-._a-zA-Z0-9]{1,253}\Z", "be letters, digits, '-', '_' or '.', no path")
"""Raise an error unless a text can be a key of a ConfigMap or a Secret."""

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
    """The TLS certificate of an exporter, from an existing Secret, for example one that cert-manager creates.

    The library does not create certificates, because each run of ``synth`` would create another one.

    Attributes:
        secret: Name or object of the Secret, in the namespace of the exporter.
        cert_filename: Key of the Secret whose value is the certificate.
        key_filename: Key of the Secret whose value is the private key.
        ca_filename: Key of the Secret whose value is the certificate of the authority. The scraper uses it to verify
            the exporter, and the exporter uses it to verify clients. If None, the scraper uses the public authorities
            that it knows.
        client_auth_type: Policy for client certificates. With ``Require…``, the probes only open a TCP connection,
            because the kubelet has no client certificate.
        server_name: Name in the certificate. None, the default: ``<name>.<namespace>.svc``, the name of the Service.
        insecure_skip_verify: Whether the scraper accepts any certificate. False by default.
        client_secret: Secret with the certificate and the key (``tls.crt``, ``tls.key``) of the scraper.

    Raises:
        GpuConstructsError: If ``secret`` or ``client_secret`` is not a Secret, or a key is not valid.

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
            f"tls.ca_filename must have a value with client_auth_type={self.client_auth_type!r}, which verifies the "
            "certificates of clients with it, got None",
        )

    @property
    def requires_client_certificate(self) -> bool:
        """Whether the exporter rejects clients without a certificate."""
        return self.client_auth_type in _REQUIRED


class _Silent(ShortErrors):
    """The metaclass of ``BasicAuth``: its error for positional arguments omits their values, which can be passwords."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if args:
            raise GpuConstructsError(
                "BasicAuth takes only keywords, got a positional value, which this message does not show. "
                "Pass users=..."
            )
        return super().__call__(*args, **kwargs)


@dataclass(frozen=True, kw_only=True)
class BasicAuth(fields.Options, metaclass=_Silent):
    """Users and passwords that clients need to read the metrics of an exporter.

    Attributes:
        users: bcrypt hash of each user's password, by username. ``htpasswd -nBC 10 "" | tr -d ':'`` prints the hash.
            Pass hashes and not passwords, because each run of ``synth`` would create another hash.
        secret: Secret with the name and the password of the user with which the scraper logs in. It must be in the
            namespace of the exporter. You can omit it only with ``scrape="none"``.
        username_key: Key of the Secret whose value is the username.
        password_key: Key of the Secret whose value is the password.

    Raises:
        GpuConstructsError: If there is no user, or a hash or a key is not valid.

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
        # This check comes first, because a type error would show the value, which may be a password.
        _users(self.users)
        super().__post_init__()

    def _conflicts(self) -> Iterable[fields.Conflict]:
        yield not self.users, "basic_auth.users must contain at least one user, got {}. Leave basic_auth out"
        for user, hashed in self.users.items():
            yield (
                not user or not user.isprintable(),
                f"basic_auth.users must have names of printable letters, got {user!r}",
            )
            yield (
                ":" in user,
                f"basic_auth.users must have names without ':', got one that begins with {user.partition(':')[0]!r}. "
                "Write the name as the key and the hash as its value",
            )
            yield (
                not _BCRYPT.match(hashed),
                f"basic_auth.users[{user!r}] must be a bcrypt hash like '$2y$10$...', got something else, which this "
                "message does not show. Create it with: htpasswd -nBC 10 ''",
            )


def _users(given: object) -> None:
    if not isinstance(given, Mapping) or not all(isinstance(text, str) for pair in given.items() for text in pair):
        raise GpuConstructsError(
            "basic_auth.users must be a dict of names and bcrypt hashes, got something else, which this message does "
            "not show"
        )


@dataclass(frozen=True)
class Guard:
    """TLS and password settings of the HTTP endpoint with the metrics of an exporter.

    Attributes:
        tls: Certificate of the exporter. None: plain HTTP.
        basic_auth: Users and passwords of the exporter. None: no password.
    """

    tls: Tls | None
    basic_auth: BasicAuth | None

    @cached_property
    def text(self) -> str | None:
        """Web configuration file of the exporter as text. None if the exporter uses neither TLS nor passwords."""
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
        """Path of the web configuration file in the container. None if there is no such file."""
        return f"{_WEB_CONFIG_DIRECTORY}/{_FILE}" if self.text else None

    @property
    def checksums(self) -> dict[str, str]:
        """Pod annotation with a checksum of the web configuration. If the checksum changes, the pods restart."""
        return {WEB_CONFIG_CHECKSUM: sha256(self.text)} if self.text else {}

    def manifests(self, metadata: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Return the object that contains the web configuration, by construct ID.

        The object is a Secret if the configuration contains password hashes, and otherwise a ConfigMap. The result is
        empty if there is no configuration. ``metadata`` is the metadata of the exporter's objects.
        """
        if self.text is None:
            return {}
        named = {**metadata, "name": f"{metadata['name']}-web-config"}
        if self.basic_auth is None:
            return {"web-config": config_map(named, {_FILE: self.text})}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": named, "type": "Opaque"}
        return {"web-config": {**secret, "stringData": {_FILE: self.text}}}

    def volumes(self, name: str) -> Volumes:
        """Return the pod volumes with the web configuration and the certificate, by name of the volume.

        ``name`` is the name of the exporter.
        """
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
        """Return a probe, as in a manifest, with which the kubelet queries an HTTP path of the exporter.

        If the exporter rejects clients without a password or certificate, the probe only opens a TCP connection.

        Args:
            path: HTTP path.
            port: Name of the container port.
            period: Time between two queries, in seconds.
            failures: Number of failed queries in a row after which the probe fails.
        """
        # The kubelet has neither a password nor a certificate.
        can_ask = self.basic_auth is None and not (self.tls and self.tls.requires_client_certificate)
        question = {"path": path, "port": port, **({"scheme": "HTTPS"} if self.tls else {})}
        return {
            **({"httpGet": question} if can_ask else {"tcpSocket": {"port": port}}),
            "periodSeconds": period,
            # The default of one second is too short on a node with busy CPUs.
            "timeoutSeconds": 5,
            "failureThreshold": failures,
        }

    def access(self, server_name: str) -> dict[str, Any]:
        """Return the fields for TLS and for the login, as in the endpoint of a ServiceMonitor or a similar object.

        ``server_name`` is the expected name in the exporter's certificate if ``tls.server_name`` is None. The result is
        empty if the exporter uses neither TLS nor passwords.

        Raises:
            GpuConstructsError: If the user does not set a Secret that the scraper needs.
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
            f"tls.client_secret must have a value with client_auth_type={tls.client_auth_type!r}, because the scraper "
            "needs "
            "a certificate, got None. Name a Secret, or pass scrape='none'"
        )
    return {"scheme": "https", "tlsConfig": config}


def _login(auth: BasicAuth) -> dict[str, Any]:
    if auth.secret is None:
        raise GpuConstructsError(
            "basic_auth.secret must have a value, because the scraper needs the password, got None. Name a "
            f"Secret with the keys {auth.username_key!r} and {auth.password_key!r}, or pass scrape='none'"
        )
    keys = {"username": auth.username_key, "password": auth.password_key}
    return {"basicAuth": {word: {"name": auth.secret, "key": key} for word, key in keys.items()}}
