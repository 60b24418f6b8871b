"""What NVIDIA's programs make of a configuration file, stated from their source alone: nothing of the library is used.

Source: NVIDIA/k8s-device-plugin@v0.18.2 and @v0.20.0, api/config/v1, cmd/nvidia-device-plugin/main.go,
cmd/gpu-feature-discovery/main.go, and the vendored sigs.k8s.io/yaml and YAML reader below it.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

TEXT, BOOL, STRATEGIES, DURATION, NUMBERS, SHARED, NAMED = "text bool strategies duration numbers shared named".split()
ZEROS = {TEXT: "", BOOL: False, STRATEGIES: (), DURATION: 0}

GFD = {
    "oneshot": BOOL,
    "noTimestamp": BOOL,
    "sleepInterval": DURATION,
    "outputFile": TEXT,
    "machineTypeFile": TEXT,
}
PLUGIN = {
    "passDeviceSpecs": BOOL,
    "deviceListStrategy": STRATEGIES,
    "deviceIDStrategy": TEXT,
    "cdiAnnotationPrefix": TEXT,
    "nvidiaCTKPath": TEXT,
    "containerDriverRoot": TEXT,
}
FLAGS = {
    "migStrategy": TEXT,
    "failOnInitError": BOOL,
    "mpsRoot": TEXT,
    "nvidiaDriverRoot": TEXT,
    "nvidiaDevRoot": TEXT,
    "gdrcopyEnabled": BOOL,
    "gdsEnabled": BOOL,
    "mofedEnabled": BOOL,
    "useNodeFeatureAPI": BOOL,
    "deviceDiscoveryStrategy": TEXT,
}
DEVICE_LIST_STRATEGIES = ("envvar", "volume-mounts", "cdi-annotations", "cdi-cri")
DISCOVERY_STRATEGIES = {"plugin": ("auto", "nvml", "tegra"), "gfd": ("auto", "nvml", "tegra", "vfio")}

_BOOLS = {
    word: value for words, value in (("y yes true on", True), ("n no false off", False)) for word in words.split()
}
_INT = re.compile(r"[-+]?(0[bB][01]+|0[oO]?[0-7]+|0[xX][0-9a-fA-F]+|0|[1-9][0-9]*)\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_INFINITIES = {f"{sign}.{word}": float(f"{sign}inf") for sign in ("", "+", "-") for word in ("inf", "Inf", "INF")}
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_UUID = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_DEVICE = re.compile(rf"[0-9]+(:[0-9]+)?|GPU-{_UUID}|MIG-({_UUID}|GPU-{_UUID}/[0-9]+/[0-9]+)")
_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}


class NotModelledError(Exception):
    """The file uses something that this statement leaves out: tags, merge keys."""


class RefusedError(Exception):
    """The program exits; the message is the end of its own."""


@dataclass(frozen=True)
class Reading:
    """What a program makes of a file.

    ``refusal`` is the end of the message, None where the program goes on; ``settings`` is what the file decides,
    by path; ``ignored`` names what stands in the file and decides nothing.
    """

    refusal: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()


def read(text: str, release: str, program: str = "plugin", *, mps_root: str = "") -> Reading:
    """Read a file as ``plugin`` or ``gfd`` of a release does; ``mps_root`` is the variable MPS_ROOT."""
    reader = _Reader(release)
    try:
        reader.load(text)
        settings = reader.settled(mps_root)
        _validate(settings, release, program)
    except RefusedError as refused:
        return Reading(refusal=str(refused))
    return Reading(settings=settings, ignored=tuple(reader.ignored))


def parse_duration(text: str) -> int:
    """Give nanoseconds as Go's time.ParseDuration does."""
    invalid = RefusedError(f"time: invalid duration {_quoted(text)}")
    rest, total = text[1:] if text[:1] in ("+", "-") else text, 0
    if rest == "0":
        return 0
    if not rest:
        raise invalid
    while rest:
        number = re.match(r"([0-9]*)(\.?)([0-9]*)", rest)
        if not (number[1] or number[3]):
            raise invalid
        rest = rest[number.end() :]
        unit = re.match(r"[^.0-9]*", rest)[0]
        if not unit:
            raise RefusedError(f"time: missing unit in duration {_quoted(text)}")
        if unit not in _UNITS:
            raise RefusedError(f"time: unknown unit {_quoted(unit)} in duration {_quoted(text)}")
        rest = rest[len(unit) :]
        total += int(number[1] or "0") * _UNITS[unit] + int(int(number[3] or "0") * _UNITS[unit] / 10 ** len(number[3]))
    if total > 2**63 - (not text.startswith("-")):
        raise invalid
    return -total if text.startswith("-") else total


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').encode()
    return '"' + "".join(chr(byte) if byte < 0x80 else f"\\x{byte:02x}" for byte in escaped) + '"'


class _Reader:
    def __init__(self, release: str) -> None:
        self.release = release
        self.ignored: list[str] = []
        self.values: dict[str, Any] = {}
        self.plugin = {**PLUGIN, **({"sharedDevicesAllocationPolicy": TEXT} if release != "0.18.2" else {})}
        self.top = {
            "version": TEXT,
            "flags": {**FLAGS, "plugin": self.plugin, "gfd": GFD},
            "resources": {"gpus": NAMED, "mig": NAMED},
            "sharing": {"timeSlicing": SHARED, "mps": SHARED},
            "imex": {"channelIDs": NUMBERS, "required": BOOL},
        }

    # YAML as go.yaml.in/yaml/v2 reads it.

    def load(self, text: str) -> None:
        before, brace, json = text.partition("{")
        if brace and not before.strip():
            text = before + brace + re.sub(r"(?m)^[ \t]+(?=[^\s#])", lambda indent: " " * len(indent[0]), json)
        try:
            events = yaml.parse(text, Loader=yaml.SafeLoader)
            for event in events:
                if getattr(event, "version", None) not in (None, (1, 1)):
                    raise RefusedError("error converting YAML to JSON: yaml: found incompatible YAML document")
                if getattr(event, "tag", None) is not None:
                    raise NotModelledError("tag")
                if isinstance(event, yaml.ScalarEvent) and re.match(r":[,:\[\]{}]", text[event.end_mark.index :]):
                    raise NotModelledError("a colon without a space, which readers take for different things")
                if isinstance(event, yaml.DocumentEndEvent):
                    break
            loader = yaml.SafeLoader(text)
            root = loader.get_node() if loader.check_node() else None
        except yaml.YAMLError as error:
            if "duplicate anchor" in str(error) or re.search(r":[,:\[\]{}]", text):
                raise NotModelledError(str(error)) from None
            raise RefusedError("error converting YAML to JSON: yaml: ") from None
        if _goes_on(events):
            self.ignored.append("every document but the first")
        tree = None if root is None else self._tree(root, "", ())
        _convertible({**tree, "version": None} if isinstance(tree, dict) else tree)
        self._reset_misplaced(tree)
        self._struct(tree, self.top, "")

    def _tree(self, node: yaml.Node, path: str, above: tuple[yaml.Node, ...]) -> Any:
        if node in above:
            raise RefusedError("error converting YAML to JSON: yaml: anchor")
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node.value) if node.style is None else node.value
        if isinstance(node, yaml.SequenceNode):
            return [self._tree(child, f"{path}[{i}]", (*above, node)) for i, child in enumerate(node.value)]
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise RefusedError("error converting YAML to JSON: yaml: invalid map key")
            if key_node.value == "<<" and key_node.style is None:
                raise NotModelledError("merge key")
            key = self._tree(key_node, path, ())
            name = _coerced(key)
            if name in found:
                self.ignored.append(_below(path, name))
            found[name] = self._tree(value_node, _below(path, name), (*above, node))
        return found

    # JSON as encoding/json decodes it, with the pointers that sigs.k8s.io/yaml makes on its way.

    def _reset_misplaced(self, tree: Any) -> None:
        """A flag of all programs that stands below a section of ``flags`` is not read there but reset to zero."""
        for key, flags in tree.items() if isinstance(tree, dict) else ():
            if _field(key, self.top) == "flags" and isinstance(flags, dict):
                for section, members in flags.items():
                    if _field(section, self.top["flags"]) and isinstance(members, dict):
                        self._reset(members, self.top["flags"], "flags")

    def _reset(self, members: Mapping[str, Any], fields: Mapping[str, Any], path: str) -> None:
        for key, value in members.items():
            name = _field(key, fields)
            if name and isinstance(fields[name], dict):
                self._reset(value if isinstance(value, dict) else {}, fields[name], f"{path}.{name}")
            elif name:
                self.values[f"{path}.{name}"] = ZEROS[fields[name]]

    def _struct(self, value: Any, fields: Mapping[str, Any], path: str) -> None:
        if value is None:
            for name in [name for name in self.values if name.startswith(f"{path}.") and path.count(".") == 1]:
                del self.values[name]
            return
        _of_kind(value, "object")
        seen: dict[str, str] = {}
        for key in sorted(value):
            name = _field(key, fields)
            if name is None:
                self.ignored.append(_below(path, key))
                continue
            where = _below(path, name)
            if isinstance(fields[name], dict):
                self._struct(value[key], fields[name], where)
                continue
            if name in seen:
                self.ignored.append(_below(path, seen[name]))
            seen[name] = key
            if value[key] is None and fields[name] not in (SHARED,):
                if path not in ("", "imex"):
                    self.values.pop(where, None)
            else:
                self._set(where, fields[name], value[key])

    def _set(self, where: str, kind: str, value: Any) -> None:
        if where == "version":
            value = value if isinstance(value, str) else _coerced(value)
        if kind == TEXT:
            _of_kind(value, "string")
        elif kind == BOOL:
            _of_kind(value, "bool")
        elif kind == DURATION:
            value = self._duration(value)
        elif kind == STRATEGIES:
            listed = (value,) if isinstance(value, str) else value
            if isinstance(listed, dict) or not all(
                isinstance(one, str | None) for one in (listed if isinstance(listed, tuple | list) else (1,))
            ):
                raise RefusedError("invalid deviceListStrategy: ")
            value = tuple(one or "" for one in listed)
        elif kind == NUMBERS:
            _of_kind(value, "array")
            value = tuple(0 if one is None else _whole(one) for one in value)
        elif kind == NAMED:
            self._named(value, where)
            return
        elif value is None and where.endswith("mps"):
            self.values.pop(where, None)
            return
        else:
            value = self._shared(value, where)
        self.values[where] = value

    def _duration(self, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise RefusedError("invalid duration")
        if not isinstance(value, str):
            return int(value) if abs(value) < 2**63 else -(2**63)
        return 2**63 - 1 if value == "infinite" and self.release != "0.18.2" else parse_duration(value)

    def _named(self, value: Any, where: str) -> None:
        _of_kind(value, "array")
        for entry in value:
            _of_kind({} if entry is None else entry, "object")
            for key in ("pattern", "name"):
                if key not in (entry or {}):
                    raise RefusedError(f"resources must have a '{key}' field set")
            _text(entry["pattern"])
            _resource_name(entry["name"])
            self.ignored.append(where)

    def _shared(self, value: Any, where: str) -> dict[str, Any]:
        value = {} if value is None else value
        _of_kind(value, "object")
        self.ignored += [
            _below(where, key)
            for key in value
            if key not in ("renameByDefault", "failRequestsGreaterThanOne", "resources")
        ]
        found = {}
        for key in ("renameByDefault", "failRequestsGreaterThanOne"):
            found[key] = value.get(key)
            if found[key] is not None:
                _of_kind(found[key], "bool")
        listed = value.get("resources")
        if listed is not None:
            _of_kind(listed, "array")
        entries = [self._entry(entry, f"{where}.resources[{i}]") for i, entry in enumerate(listed or [])]
        if not entries:
            raise RefusedError("no resources specified")
        found["resources"] = {}
        for name, replicas, rename, path in entries:
            if rename and not (found["renameByDefault"] and rename == f"{name}.shared"):
                self.ignored.append(f"{path}.rename")
            if name in found["resources"]:
                self.ignored.append(path)
            found["resources"][name] = max(replicas, found["resources"].get(name, 0))
        return found

    def _entry(self, entry: Any, path: str) -> tuple[str, int, str, str]:
        entry = {} if entry is None else entry
        _of_kind(entry, "object")
        if "name" not in entry:
            raise RefusedError("no resource name specified")
        name = _resource_name(entry["name"])
        if "devices" in entry:
            self._devices(entry["devices"], path)
        if "replicas" not in entry:
            raise RefusedError("no replicas specified")
        replicas = 0 if entry["replicas"] is None else _whole(entry["replicas"])
        if replicas < 2:
            raise RefusedError("number of replicas must be >= 2")
        self.ignored += [_below(path, key) for key in entry if key not in ("name", "replicas", "rename", "devices")]
        return name, replicas, _resource_name(entry["rename"]) if "rename" in entry else "", path

    def _devices(self, value: Any, path: str) -> None:
        if value is None or isinstance(value, str):
            if value != "all":
                raise RefusedError(f"devices set as '{value or ''}' but the only valid string input is 'all'")
            return
        if isinstance(value, list):
            for item in value:
                is_index = isinstance(item, int) and not isinstance(item, bool) and item >= 0
                if not (item is None or is_index or (isinstance(item, str) and _DEVICE.fullmatch(item))):
                    raise RefusedError("unsupported type for device in devices list: ")
        elif isinstance(value, bool | dict) or not float(value).is_integer():
            raise RefusedError("unrecognized type for devices spec: ")
        elif value <= 0:
            raise RefusedError(f"devices set as '{int(value)}' but a count of devices must be > 0")
        self.ignored.append(f"{path}.devices")

    # What the programs make of it afterwards.

    def settled(self, mps_root: str) -> dict[str, Any]:
        version = self.values.pop("version", "") or "v1"
        if version != "v1":
            raise RefusedError(f"unknown version: {version}")
        settings = {name: value for name, value in self.values.items() if value or not name.startswith("imex.")}
        if mps_root:
            settings["flags.mpsRoot"] = mps_root
        time_slicing, mps = settings.pop("sharing.timeSlicing", None), settings.pop("sharing.mps", None)
        if mps and time_slicing:
            self.ignored.append("sharing.timeSlicing")
        shared = mps or time_slicing
        if not shared:
            return settings
        settings["sharing.strategy"] = "mps" if mps else "time-slicing"
        settings["sharing.resources"] = shared["resources"]
        settings["sharing.renameByDefault"] = bool(shared["renameByDefault"])
        fails = shared["failRequestsGreaterThanOne"]
        if mps and fails is False and self.release == "0.18.2":
            self.ignored.append("sharing.mps.failRequestsGreaterThanOne")
        always = mps and self.release == "0.18.2"
        settings["sharing.failRequestsGreaterThanOne"] = bool(mps) if fails is None or always else fails
        for name in shared["resources"]:
            is_mig = name.startswith("nvidia.com/mig-") and settings.get("flags.migStrategy") == "mixed"
            if name != "nvidia.com/gpu" and not is_mig:
                self.ignored.append(name)
        return settings


def _validate(settings: Mapping[str, Any], release: str, program: str) -> None:
    """Refuse flags in the order in which the program looks at them."""
    discovery = settings.get("flags.deviceDiscoveryStrategy", "auto")
    mig = settings.get("flags.migStrategy", "none")
    if program == "plugin":
        for strategy in settings.get("flags.plugin.deviceListStrategy", ()):
            if strategy not in DEVICE_LIST_STRATEGIES:
                raise RefusedError(f"invalid --device-list-strategy option: invalid strategy: {strategy}")
        device_id = settings.get("flags.plugin.deviceIDStrategy", "uuid")
        if device_id not in ("uuid", "index"):
            raise RefusedError(f"invalid --device-id-strategy option: {device_id}")
        policy = settings.get("flags.plugin.sharedDevicesAllocationPolicy", "distributed")
        if policy not in ("distributed", "packed"):
            raise RefusedError(f"invalid --shared-devices-allocation-policy option: {policy}")
        if settings.get("sharing.strategy") == "mps":
            if mig == "mixed":
                raise RefusedError("using --mig-strategy=mixed is not supported with MPS")
            if not settings.get("flags.mpsRoot"):
                raise RefusedError("using MPS requires --mps-root to be specified")
    if discovery not in DISCOVERY_STRATEGIES[program]:
        raise RefusedError(f"invalid --device-discovery-strategy option {discovery}")
    if program == "plugin":
        if mig not in ("none", "single", "mixed"):
            raise RefusedError(f"unknown MIG strategy: {mig}")
        channels = settings.get("imex.channelIDs", ())
        if channels not in ((), (0,)):
            found = " ".join(map(str, channels))
            raise RefusedError(
                f"invalid IMEX channel IDs: invalid IMEX config: channelIDs must be [] or [0]; found [{found}]"
            )


def _goes_on(events: Iterator[yaml.Event]) -> bool:
    try:
        return any(not isinstance(event, yaml.StreamEndEvent) for event in events)
    except yaml.YAMLError:
        return True


def _scalar(text: str) -> Any:
    """Give what a plain scalar means: no dates, no numbers in base 60."""
    if text in ("", "~", "null", "Null", "NULL"):
        return None
    if text in (text.lower(), text.upper(), text.capitalize()) and text.lower() in _BOOLS:
        return _BOOLS[text.lower()]
    if text in (".nan", ".NaN", ".NAN"):
        return math.nan
    if text in _INFINITIES:
        return _INFINITIES[text]
    if text[0] not in "+-.0123456789":
        return text
    number = text if text[0] == "." else text.replace("_", "")
    if _INT.match(number):
        octal = re.sub(r"^([-+]?)0(?=[0-7])", r"\g<1>0o", number)
        if -(2**63) <= int(octal, 0) < 2**64:
            return int(octal, 0)
    return float(number) if _FLOAT.match(number) else text


def _convertible(tree: Any) -> None:
    """Refuse what JSON cannot hold."""
    if isinstance(tree, dict) and None in tree:
        raise RefusedError("error converting YAML to JSON: unsupported map key of type")
    if isinstance(tree, dict | list):
        for child in tree.values() if isinstance(tree, dict) else tree:
            _convertible(child)
    elif isinstance(tree, float) and not math.isfinite(tree):
        raise RefusedError("error converting YAML to JSON: json: unsupported value")


def _coerced(value: Any) -> Any:
    """Give a key, or the version, as text."""
    if isinstance(value, bool):
        return str(value).lower()
    return (
        f"{value:g}".replace("inf", "+Inf").replace("-+", "-").replace("nan", "NaN")
        if isinstance(value, float)
        else str(value)
        if isinstance(value, int)
        else value
    )


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _folded(text: str) -> str:
    return "".join(one.casefold() if len(one.casefold()) == 1 else one for one in text)


def _field(key: str, fields: Mapping[str, Any]) -> str | None:
    """Find the field of a struct that a key means: the same name, or else the same but for upper and lower case."""
    return key if key in fields else next((name for name in fields if _folded(name) == _folded(key)), None)


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    return {str: "string", int: "number", float: "number", list: "array", dict: "object"}[type(value)]


def _of_kind(value: Any, kind: str) -> None:
    if _kind(value) != kind:
        raise RefusedError(f"json: cannot unmarshal {_kind(value)}")


def _text(value: Any) -> str:
    if value is not None:
        _of_kind(value, "string")
    return value or ""


def _whole(value: Any) -> int:
    _of_kind(value, "number")
    if not float(value).is_integer() or not -(2**63) <= value < 2**63:
        raise RefusedError("json: cannot unmarshal number")
    return int(value)


def _resource_name(value: Any) -> str:
    name = _text(value)
    name = name if name.startswith("nvidia.com/") else f"nvidia.com/{name}"
    if len(name.encode()) > 63:
        raise RefusedError(f"fully-qualified resource name must be 63 characters or less: {name}")
    if not _SUBDOMAIN.match(name.partition("/")[2]):
        raise RefusedError(f"incorrect format for resource name '{name}': [")
    return name
