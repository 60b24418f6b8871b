"""Detection of credentials in plain text in environment variables, arguments and Helm values.

Manifests appear in Git, in logs and in the output of ``kubectl get``, so a credential belongs in a Secret. The
functions recognize a credential by the name of its field or by its format. docs/security.md lists the names and the
formats.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import unquote

from gpu_constructs.errors import GpuConstructsError, then
from gpu_constructs.kube import fields

# --- names ----------------------------------------------------------------------------------------------------

# The last words of a name state its content, so MAX_TOKENS, TOKEN_LIMIT, PASSWORD_FILE and API_KEY_PATH do not match.
_SECRET_OF = "ACCESS|API|APP|AUTH|CLIENT|CONSUMER|COOKIE|HMAC|JWT|OAUTH|SESSION|SHARED|SIGNING|WEBHOOK"
_KEY_OF = "ACCESS|ACCOUNT|API|AUTH|ENCRYPTION|LICENSE|MASTER|PRIVATE|SECRET|SHARED|SIGNING|TLS"
_PASS_OF = "ADMIN|DB|FTP|MAIL|MONGO|MYSQL|PG|POSTGRES|PROXY|RABBITMQ|REDIS|ROOT|SMTP|USER"
_PASSWORD = fields.regex(rf"PASSWORD|PASSWD|PASSPHRASE|REQUIREPASS|(?:^|_)(?:{_PASS_OF})_(?:PASS|PWD)")
_NAME = fields.regex(
    rf"(?:{_PASSWORD.pattern}|(?:^|_)TOKEN|^SECRET|(?:{_SECRET_OF})_?SECRET|(?:^|_|{_KEY_OF})(?:{_KEY_OF})_?KEY"
    r"|(?:^|_)CREDENTIALS?|^PLEX_CLAIM)(?:_?[0-9]+)?\Z"
)
# Tokens of a language model's vocabulary.
_VOCABULARY = fields.regex(
    r"(?:^|_)(?:AUDIO|BEGIN|BOS|CLASS|CLS|END|EOS|IMAGE|INITIALIZER|INSTANCE|MASK|MODIFIER|PAD|PADDING|PLACEHOLDER|SEP"
    r"|SPECIAL|START|STOP|TRIGGER|UNK|UNKNOWN|VIDEO)_TOKEN\Z"
)

# --- values ---------------------------------------------------------------------------------------------------

# Each row: description of the credential, prefix of its text, and pattern of the text after the prefix.
_FORMATS = (
    ("an Anthropic, OpenAI or OpenRouter key", "sk-", r"[\w-]{20,}"),
    ("an AWS access key", "AKIA", r"[A-Z0-9]{16}(?![A-Z0-9])"),
    ("an AWS access key", "ASIA", r"[A-Z0-9]{16}(?![A-Z0-9])"),
    ("a bearer token", "Bearer ", r"[\w.~+/-]{16,}"),
    ("a bearer token", "bearer ", r"[\w.~+/-]{16,}"),
    ("a Docker Hub token", "dckr_", r"(?:pat|oat)_[\w-]{20,}"),
    ("a Docker login", '"auths":', r'\s{0,9}\{[^}]{0,999}"(?:auth|password)"\s{0,9}:\s{0,9}"[^"]'),
    ("a GitHub token", "gh", r"[opsru]_[A-Za-z0-9]{30,}"),
    ("a GitHub token", "github_pat_", r"\w{30,}"),
    ("a GitLab token", "glpat-", r"[\w-]{20,}"),
    ("a Google API key", "AIza", r"[\w-]{35}"),
    ("a Grafana token", "gl", r"(?:sa|c)_[\w=-]{20,}"),
    ("a Groq key", "gsk_", r"[A-Za-z0-9]{30,}"),
    ("a Hugging Face token", "hf_", r"[A-Za-z0-9]{30,}"),
    ("a JSON Web Token", "eyJ", r"[\w-]{10,999}\.eyJ[\w-]{10,999}\.[\w-]*"),
    ("an npm token", "npm_", r"[A-Za-z0-9]{36}"),
    ("an NVIDIA API key", "nvapi-", r"[\w-]{20,}"),
    ("a private key", "-----BEGIN ", r"[A-Z0-9 ]{0,30}PRIVATE KEY"),
    ("an age key", "AGE-SECRET-KEY-1", r"[A-Z0-9]{20,}"),
    ("a PyPI token", "pypi-AgE", r"[\w-]{20,}"),
    ("a Replicate token", "r8_", r"[A-Za-z0-9]{30,}"),
    ("a Slack token", "xox", r"[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("a Slack webhook", "hooks.slack.com/services/", r"T\w{1,99}/B\w{1,99}/\w+"),
    ("a Stripe key", "rk_live_", r"[A-Za-z0-9]{20,}"),
    ("a Stripe key", "sk_live_", r"[A-Za-z0-9]{20,}"),
    ("a Tailscale key", "tskey-", r"[a-z]{1,20}-[A-Za-z0-9-]{10,}"),
)
_FORMS = tuple((kind, start, fields.regex(re.escape(start) + rest)) for kind, start, rest in _FORMATS)
# A match of these formats without a digit is an ordinary word.
_WORDY = ("an Anthropic, OpenAI or OpenRouter key", "a bearer token")
_MASK = fields.regex("x{8}|X{8}")
_USERINFO = fields.regex(r"\b[A-Za-z][A-Za-z0-9+.-]{0,30}://[^\s/@:\"']*:([^\s/@\"']+)@")
_IN_QUERY = fields.regex(r"[?&]([A-Za-z][A-Za-z0-9_.-]*)=([^&\s\"'#]+)")
_ASSIGNED = fields.regex(r"-{0,2}([A-Za-z][A-Za-z0-9_.-]*)=([^\n]*)\Z")
_FLAG = fields.regex(r"--?([A-Za-z][A-Za-z0-9_.-]*)\Z")
_REFERENCE = fields.regex(
    r"\$\([^)]{1,99}\)|\$\{[^}]{1,99}\}|\{\{.{1,99}\}\}|\A(?:\$\w+|<[^<>]*>|\[[^\[\]]*\])\Z", re.DOTALL
)
_NUMBER = fields.regex(r"[-+]?[0-9]{1,6}(?:\.[0-9]{1,6})?[A-Za-z%]{0,2}")
# A path, a URL, a reference, a filename, the name of a variable, a mask, or an instruction to the reader.
_NO_SECRET = fields.regex(
    r"(?:\.{0,2}|~|[A-Za-z]:)[/\\][\w./\\ @~-]*|[A-Za-z][A-Za-z0-9+.-]*://.*|(?:arn|env|file|op|secret|ssm|vault):.*"
    r"|[\w./-]+\.(?:crt|env|json|key|pem|pub|ya?ml)|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+"
    r"|(?:[A-Za-z]{1,6}[-_])?[*xX.-]+|(?:insert|replace|your)[-_ ].*",
    re.DOTALL,
)
_PLACEHOLDERS = frozenset(
    "auto disabled dummy empty enabled false n/a na no no-key none not-needed null off ollama on placeholder redacted "
    "sk-no-key-required true unset unused yes".split()
)
_ADMITTED: set[str] = set()


def not_a_secret(text: str) -> str:
    """Mark a text as public, so that this library accepts the text although it looks like a credential.

    Use it in ``env``, ``args`` and Helm values, for example ``env={"DEMO_TOKEN": not_a_secret("public-demo")}``. The
    mark applies to equal texts everywhere in the Python program.

    Args:
        text: Complete value of a variable, of an argument or of a key in Helm values.

    Returns:
        The text, unchanged.

    Raises:
        GpuConstructsError: The text is not a ``str``.
    """
    fields.of_type("text", text, str)
    _ADMITTED.add(text)
    return text


class Credential(NamedTuple):
    """The description of a text that looks like a credential. It does not contain the text, so messages cannot show it.

    Attributes:
        why: Reason why the text looks like a credential, such as ``its name says so``.
        length: Number of characters of the text.
    """

    why: str
    length: int

    def refusal(self, field: str, way_out: str) -> GpuConstructsError:
        """Return the error for a field that contains the credential.

        Args:
            field: Name of the field in the message.
            way_out: Sentence that states where the user can put the credential instead.
        """
        return GpuConstructsError(
            f"{field} must not be a credential in plain text, got {self}{then(way_out)}, or use not_a_secret(...) if "
            "the value is public"
        )

    def __str__(self) -> str:
        return f"{self.length} characters ({self.why})"


def in_variable(name: str, value: object) -> Credential | None:
    """Return a ``Credential`` if the name or the value of a field shows that the value is a credential.

    A field is for example an environment variable. Return None if the value does not look like a credential.
    """
    if not isinstance(value, str) or value in _ADMITTED:
        return None
    form = _form(value)
    if form is None and _is_named(name) and not _is_harmless(value, name):
        form = "its name says so"
    return None if form is None else Credential(form, len(value))


def in_arguments(words: Sequence[object]) -> Iterator[tuple[int, Credential]]:
    """Yield the credentials in a command or its arguments.

    The function recognizes ``--token=x``, ``--token x`` and ``TOKEN=x`` by name, and other arguments by format.

    Yields:
        Index of the argument, and the credential in it.
    """
    flag = ""
    for index, word in enumerate(words):
        if not isinstance(word, str):
            flag = ""
            continue
        assigned = _ASSIGNED.match(word)
        name, value = assigned.groups() if assigned else (flag, word)
        name = "" if "(" in value else _key(name)
        # A flag that follows a flag is not its value.
        is_flag = _FLAG.match(word)
        found = None if word in _ADMITTED or (is_flag and flag) else in_variable(name, value)
        if found is not None:
            yield index, found
        flag = is_flag[1] if is_flag else ""


def in_container(container: Mapping[str, Any]) -> Iterator[tuple[str, Credential]]:
    """Yield the credentials in a container of a manifest.

    Yields:
        Name of the field, and the credential in it.
    """
    variables, *words = (
        given if isinstance(given := container.get(field), list | tuple) else () for field in ("env", "command", "args")
    )
    for variable in variables:
        found = in_variable(str(variable.get("name")), variable.get("value")) if isinstance(variable, Mapping) else None
        if found is not None:
            yield f"env[{variable.get('name')!r}]", found
    for field, given in zip(("command", "args"), words, strict=True):
        for index, found in in_arguments(given):
            yield f"{field}[{index}]", found


def in_values(values: object, path: str = "values") -> Iterator[tuple[str, Credential]]:
    """Yield the credentials in the Helm values of any chart.

    The function checks the key and the format of each value. It treats an entry ``{"name": ..., "value": ...}`` as an
    environment variable, and a list of texts as arguments.

    Yields:
        Path of the value in the Helm values, and the credential in the value.
    """
    waiting: list[tuple[str, object]] = [(path, values)]
    # A value can contain itself, or occur many times.
    seen: set[int] = set()
    while waiting:
        place, value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        inside: list[tuple[str, object]] = []
        if isinstance(value, Mapping):
            is_variable = isinstance(value.get("name"), str) and "value" in value
            for key, member in value.items():
                found = in_variable(value["name"] if is_variable and key == "value" else _key(key), member)
                if found is not None:
                    yield f"{place}.{key}", found
            inside = [(f"{place}.{key}", member) for key, member in value.items()]
        elif isinstance(value, list | tuple):
            for index, found in in_arguments(value):
                yield f"{place}[{index}]", found
            inside = [(f"{place}[{index}]", member) for index, member in enumerate(value)]
        waiting += reversed([(at, member) for at, member in inside if not isinstance(member, str)])


def refuse_variable(field: str, name: str, value: object, way_out: str) -> None:
    """Raise if an environment variable contains a credential.

    Args:
        field: Name of the field in the message, such as ``env['HF_TOKEN']``.
        name: Name of the environment variable.
        value: Value of the environment variable.
        way_out: Sentence of the message that states where the user can put the credential instead.

    Raises:
        GpuConstructsError: The value looks like a credential.
    """
    found = in_variable(name, value)
    if found is not None:
        raise found.refusal(field, way_out)


def refuse_in_arguments(field: str, words: Sequence[Any]) -> None:
    """Raise if ``words``, a command or its arguments, contain a credential.

    Raises:
        GpuConstructsError: An argument looks like a credential.
    """
    for index, found in in_arguments(words):
        raise found.refusal(
            f"{field}[{index}]", "write $(VARIABLE) here, and set the variable with EnvValue.secret(<name>, key=<key>)"
        )


def refuse_in_values(values: object, way_out: str) -> None:
    """Raise if the values of a Helm chart contain a credential.

    The argument ``way_out`` is the sentence of the message that states where the user can put the credential instead.

    Raises:
        GpuConstructsError: A value looks like a credential.
    """
    for path, found in in_values(values):
        raise found.refusal(path, way_out)


def _words(name: str) -> str:
    """Return the words after the last dot of a name, joined by underscores: ``API_KEY`` for ``spec.apiKey``."""
    last = name.rpartition(".")[2]
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", last).replace("-", "_").upper()


def _key(key: object) -> str:
    """Return a key as text. Return an empty text for a key such as ``existingSecret``, whose value names a Secret."""
    name = str(key)
    return "" if re.search(r"(?:^s|S)ecret\Z", name) else name


@lru_cache(maxsize=4096)
def _is_named(name: str) -> bool:
    """Check whether the name of a field, such as ``API_KEY``, indicates that the field contains a credential."""
    words = _words(name)
    return bool(_NAME.search(words)) and not _VOCABULARY.search(words)


def _is_harmless(value: str, name: str) -> bool:
    """Check whether the value of a field such as ``API_TOKEN`` is certainly not a credential.

    Examples are ``dummy``, ``$(TOKEN)`` and a path. A number is harmless unless ``name``, the name of the field,
    indicates a password.
    """
    text = value.strip().strip("\"'")
    if not text or text.lower() in _PLACEHOLDERS or _REFERENCE.search(text):
        return True
    if _NO_SECRET.fullmatch(text):
        return True
    # A password can be a number; a token cannot.
    return bool(_NUMBER.fullmatch(text)) and not _PASSWORD.search(_words(name))


def _is_no_word(match: re.Match[str], kind: str) -> bool:
    is_word = kind in _WORDY and not re.search("[0-9]", match[0])
    before = match.string[max(0, match.start() - 1) : match.start()]
    return not is_word and not _MASK.search(match[0]) and not before.isalnum()


def _form(value: str) -> str | None:
    """Return a phrase about the format of a text that contains a credential, such as ``it looks like a GitHub token``.

    Return None if no part of the text has the format of a credential.
    """
    for kind, start, form in _FORMS:
        if start in value and any(_is_no_word(match, kind) for match in form.finditer(value)):
            return f"it looks like {kind}"
    if "://" not in value:
        return None
    for password in _USERINFO.findall(value):
        if not _REFERENCE.search(unquote(password)) and password not in _ADMITTED and password.strip("*xX"):
            return "a URL with a password"
    for name, given in _IN_QUERY.findall(value):
        if _is_named(name) and given not in _ADMITTED and not _is_harmless(given, name):
            return f"a URL with {name}"
    return None
