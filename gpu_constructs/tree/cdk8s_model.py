"""A model in Python of the construct trees that cdk8s keeps in Node.js.

The model answers the jsii messages that most cdk8s apps send to Node.js. It raises ``Unknown`` for every other message,
for example for a message that would fail. Node.js then answers the message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from jsii._kernel import types

from gpu_constructs.records import regex

RELEASES = {"constructs": "10.8.1", "cdk8s": "2.70.115"}
"""Releases of the libraries that the model describes."""

_FIRST_ID = 10_000
_YAML_OUTPUT = "cdk8s.YamlOutputType"
_RESOLVERS = ("cdk8s.LazyResolver", "cdk8s.ImplicitTokenResolver", "cdk8s.NumberStringUnionResolver")
_HARMLESS_OVERRIDES = frozenset({"toJson", "toString", "addJsonPatch", "addDependency", "with"})
"""Methods of Python subclasses that JavaScript calls only if Node.js runs, so that the model can ignore them."""
_SEPARATORS = regex(r"[/\n]")
_IDS_OF_JAVASCRIPT = frozenset(
    "__defineGetter__ __defineSetter__ __lookupGetter__ __lookupSetter__ __proto__ constructor hasOwnProperty "
    "isPrototypeOf propertyIsEnumerable toLocaleString toString valueOf".split()
)
"""Members of every JavaScript object. The model does not support constructs whose ID is one of these names."""
_DNS_LABEL = regex(r"[0-9a-z-]{1,63}")
_NO_METADATA = dict.fromkeys(("name", "namespace", "labels", "annotations", "finalizers", "ownerReferences"))
_RECORD = "/recordConstructMetadata"


class Unknown(Exception):
    """The exception for a message to Node.js that the Python model of Node.js cannot answer.

    The caller then sends the message to Node.js.
    """


@dataclass(eq=False, slots=True)
class _Made:
    """The model of an object in JavaScript: a construct, or another object such as a ``JsonPatch``.

    Attributes:
        ref: Reference of the object, for example ``cdk8s.Chart@10002``.
        id: ID of the construct.
        scope: Parent of the construct.
        data: Properties of the construct. For an object that is not a construct: the arguments that created it.
        children: Children of the construct, by ID.
        node: Reference of the ``Node`` of the construct; None until the app reads ``construct.node``.
        validations: Validations that the app added with ``node.add_validation``.
    """

    ref: types.ObjRef
    id: str = ""
    scope: _Made | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    children: dict[str, _Made] = field(default_factory=dict)
    node: types.ObjRef | None = None
    validations: list[Any] = field(default_factory=list)

    @property
    def fqn(self) -> str:
        return self.ref.ref.partition("@")[0]

    @property
    def path(self) -> str:
        above = self.scope.path if self.scope else ""
        return f"{above}/{self.id}" if above else self.id

    @property
    def root(self) -> _Made:
        return self.scope.root if self.scope else self

    def find_all(self) -> Iterator[_Made]:
        yield self
        for child in self.children.values():
            yield from child.find_all()


class Model:
    """A copy in Python of the JavaScript objects that an app creates through jsii, so that Node.js need not start.

    Args:
        environment: Environment variables of the process at the first import of cdk8s.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._ids = count(_FIRST_ID)
        self._objects: dict[str, _Made] = {}
        self._nodes: dict[str, _Made] = {}

    def answer(self, request: Any) -> tuple[Any, bool]:
        """Return a pair: the response to a message for Node.js, and whether the message changes objects in JavaScript.

        Raises:
            Unknown: The model cannot answer the message. The caller must not use the model again.
        """
        match request:
            case types.GetRequest(objref=types.ObjRef(ref=ref), property=name):
                return self._property(ref, name)
            case types.CreateRequest():
                return types.CreateResponse(self._create(request).ref.ref), True
            case types.InvokeRequest(objref=types.ObjRef(ref=ref), method=method, args=args):
                return self._invoked(ref, method, args or [])
            case types.StaticInvokeRequest(fqn=fqn, method=method, args=args):
                return self._called(fqn, method, args or [])
            case types.LoadRequest(name=name, version=version) if RELEASES.get(name, version) == version:
                return types.LoadResponse(name, 0), True
        raise Unknown

    def _create(self, request: types.CreateRequest) -> _Made:
        overridden = {override.method for override in request.overrides}
        match request:
            case types.CreateRequest(fqn="Object", args=[], interfaces=["constructs.IValidation"]):
                return self._new("Object")
            case types.CreateRequest(fqn="cdk8s.DependencyGraph", args=[node], overrides=[]):
                return self._new("cdk8s.DependencyGraph", scope=self._node(node))
        if not overridden <= _HARMLESS_OVERRIDES:
            raise Unknown
        match request:
            case types.CreateRequest(fqn="constructs.Construct", args=[scope, str(id)]):
                return self._construct("constructs.Construct", scope, id, {})
            case types.CreateRequest(fqn="cdk8s.ApiObject", args=[scope, str(id), {"$jsii.struct": {"data": data}}]):
                _check_object(data)
                made = self._construct("cdk8s.ApiObject", scope, id, data)
                _chart_of(made)
                return made
            case types.CreateRequest(fqn="cdk8s.Chart", args=[scope, str(id), {"$jsii.struct": {"data": data}}]):
                _check_texts(data, "namespace")
                data = {**data, "labels": _texts(data["labels"])}
                return self._construct("cdk8s.Chart", scope, id, data)
            case types.CreateRequest(fqn="cdk8s.App", args=[{"$jsii.struct": {"data": data}}]):
                return self._new("cdk8s.App", data=self._app(data))
        raise Unknown

    def _app(self, data: Mapping[str, Any]) -> Mapping[str, Any]:
        match data:
            case {"yamlOutputType": None}:
                kind = "FILE_PER_CHART"
            case {"yamlOutputType": {"$jsii.enum": str(value)}}:
                kind = value.rpartition("/")[2]
            case _:
                raise Unknown
        _check_texts(data, "outdir", "outputFileExtension")
        records = data["recordConstructMetadata"]
        if data["resolvers"] is not None or not isinstance(records, bool | None):
            raise Unknown
        outdir, extension = data["outdir"], data["outputFileExtension"]
        variable = self._environment.get("CDK8S_RECORD_CONSTRUCT_METADATA")
        return {
            "outdir": self._environment.get("CDK8S_OUTDIR", "dist") if outdir is None else outdir,
            "outputFileExtension": ".k8s.yaml" if extension is None else extension,
            "yamlOutputType": types.EnumRef(types.ObjRef(f"{_YAML_OUTPUT}@"), kind),
            "records": variable == "true" if records is None else records,
            "resolvers": [],
        }

    def _new(self, fqn: str, **given: Any) -> _Made:
        made = _Made(types.ObjRef(f"{fqn}@{next(self._ids)}"), **given)
        self._objects[made.ref.ref] = made
        return made

    def _construct(self, fqn: str, scope: Any, id: str, data: Mapping[str, Any]) -> _Made:
        parent, id = self._object(scope), _SEPARATORS.sub("--", id)
        # JavaScript sorts children whose ID is a number before all others.
        is_plain = id and id.isascii() and not id.isdigit() and id not in _IDS_OF_JAVASCRIPT
        if not is_plain or id in parent.children or not parent.ref.ref.startswith(("cdk8s.", "constructs.")):
            raise Unknown
        made = parent.children[id] = self._new(fqn, id=id, scope=parent, data=data)
        return made

    def _object(self, value: Any) -> _Made:
        made = self._objects.get(getattr(getattr(value, "__jsii_ref__", None), "ref", ""))
        if made is None:
            raise Unknown
        return made

    def _node(self, value: Any) -> _Made:
        made = self._nodes.get(getattr(getattr(value, "__jsii_ref__", None), "ref", ""))
        if made is None:
            raise Unknown
        return made

    def _property(self, ref: str, name: str) -> tuple[types.GetResponse, bool]:
        if ref in self._nodes:
            return types.GetResponse(_of_node(self._nodes[ref], name)), False
        made = self._objects.get(ref)
        if made is None:
            raise Unknown
        if name == "node" and made.fqn != "Object":
            return self._node_of(made)
        match made.fqn, name:
            case "cdk8s.App", "resolvers":
                is_first = not made.data["resolvers"]
                if is_first:
                    made.data["resolvers"].extend(self._new(resolver).ref for resolver in _RESOLVERS)
                return types.GetResponse(list(made.data["resolvers"])), is_first
            case "cdk8s.App", "outdir" | "outputFileExtension" | "yamlOutputType":
                return types.GetResponse(made.data[name]), False
            case "cdk8s.Chart", "namespace":
                return types.GetResponse(made.data[name]), False
            case "cdk8s.Chart", "labels":
                return types.GetResponse(dict(made.data[name])), False
            case "cdk8s.ApiObject", "apiVersion" | "kind":
                return types.GetResponse(made.data[name]), False
            case "cdk8s.ApiObject", "apiGroup":
                group, slash, _ = made.data["apiVersion"].partition("/")
                return types.GetResponse(group if slash else "core"), False
            case "cdk8s.ApiObject", "name" if _metadata(made.data)["name"] is not None:
                return types.GetResponse(_metadata(made.data)["name"]), False
        raise Unknown

    def _node_of(self, made: _Made) -> tuple[types.GetResponse, bool]:
        is_first = made.node is None
        if made.node is None:
            made.node = types.ObjRef(f"constructs.Node@{next(self._ids)}")
            self._nodes[made.node.ref] = made
        return types.GetResponse(made.node), is_first

    def _invoked(self, ref: str, method: str, args: list[Any]) -> tuple[types.InvokeResponse, bool]:
        made = self._nodes.get(ref) or self._objects.get(ref)
        is_node = ref in self._nodes
        if made is None:
            raise Unknown
        match is_node, method, args:
            case True, "findAll", [] | [None]:
                return types.InvokeResponse([one.ref for one in made.find_all()]), False
            case True, "addValidation", [validation]:
                made.validations.append(validation)
                return types.InvokeResponse(None), True
            case True, "tryFindChild", [str(id)] if id not in _IDS_OF_JAVASCRIPT:
                found = made.children.get(_SEPARATORS.sub("--", id))
                return types.InvokeResponse(found.ref if found else None), False
            case True, "tryRemoveChild", [str(id)] if id not in _IDS_OF_JAVASCRIPT:
                return types.InvokeResponse(made.children.pop(id, None) is not None), True
        match made.fqn, method, args:
            case "cdk8s.DependencyGraph", "topology", [] if made.scope is not None:
                return types.InvokeResponse([one.ref for one in made.scope.find_all()]), False
            case "cdk8s.Chart", "toJson", [] if _renders_nothing(made):
                return types.InvokeResponse([]), False
        raise Unknown

    def _called(self, fqn: str, method: str, args: list[Any]) -> tuple[types.InvokeResponse, bool]:
        match fqn, method, args:
            case "cdk8s.Names", "toDnsLabel", [construct, {"$jsii.struct": {"data": options}}]:
                path = self._object(construct).path
                if any(value is not None for value in options.values()) or not _DNS_LABEL.fullmatch(path):
                    raise Unknown
                return types.InvokeResponse(path), False
            case "cdk8s.ApiObject", "of", [construct]:
                return types.InvokeResponse(_api_object_of(self._object(construct)).ref), False
            case "cdk8s.Chart", "of", [construct]:
                return types.InvokeResponse(_chart_of(self._object(construct)).ref), False
            case "cdk8s.JsonPatch", "test", [str(path), bool(value)] if path == _RECORD:
                return types.InvokeResponse(self._new("cdk8s.JsonPatch", data={_RECORD: value}).ref), True
            case "cdk8s.JsonPatch", "apply", [target, patch]:
                app, wanted = self._object(target), self._object(patch).data.get(_RECORD)
                if app.fqn != "cdk8s.App" or app.data["records"] is not wanted:
                    raise Unknown
                return types.InvokeResponse(app.ref), False
        raise Unknown


def _of_node(made: _Made, name: str) -> Any:
    match name:
        case "path":
            return made.path
        case "id":
            return made.id
        case "root":
            return made.root.ref
        case "scope":
            return made.scope.ref if made.scope else None
        case "children":
            return [child.ref for child in made.children.values()]
        case "dependencies":
            return []
        case "defaultChild":
            child = _default_child(made)
            return child.ref if child else None
    raise Unknown


def _default_child(made: _Made) -> _Made | None:
    children = [made.children[id] for id in ("Default", "Resource") if id in made.children]
    if len(children) == 2:
        raise Unknown
    return children[0] if children else None


def _api_object_of(made: _Made) -> _Made:
    if made.fqn == "cdk8s.ApiObject":
        return made
    child = _default_child(made)
    if child is None:
        raise Unknown
    return _api_object_of(child)


def _chart_of(made: _Made) -> _Made:
    if made.fqn == "cdk8s.Chart":
        return made
    if made.scope is None:
        raise Unknown
    return _chart_of(made.scope)


def _renders_nothing(chart: _Made) -> bool:
    """Check whether a chart has no children, and its app has no validations.

    The function ignores validations that ``synth`` runs in place of cdk8s.
    """
    validations = (validation for made in chart.root.find_all() for validation in made.validations)
    return not chart.children and all(getattr(one, "is_left_to_synth", False) for one in validations)


def _check_object(data: Mapping[str, Any]) -> None:
    if not isinstance(data["apiVersion"], str) or data["apiVersion"].count("/") > 1:
        raise Unknown
    _check_texts(data, "kind")
    metadata = _metadata(data)
    _check_texts(metadata, "name", "namespace")
    _texts(metadata["labels"])
    _texts(metadata["annotations"])
    if not all(isinstance(one, str) for one in metadata["finalizers"] or ()) or metadata["ownerReferences"]:
        raise Unknown


def _metadata(data: Mapping[str, Any]) -> Mapping[str, Any]:
    match data["metadata"]:
        case {"$jsii.struct": {"data": Mapping() as metadata}}:
            return metadata
        case None:
            return _NO_METADATA
    raise Unknown


def _check_texts(data: Mapping[str, Any], *names: str) -> None:
    if not all(isinstance(data[name], str | None) for name in names):
        raise Unknown


def _texts(value: Any) -> Mapping[str, str]:
    match value:
        case None:
            return {}
        case {"$jsii.map": Mapping() as texts} if all(isinstance(text, str) for text in texts.values()):
            return texts
    raise Unknown
