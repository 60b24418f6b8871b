from __future__ import annotations

from pkgutil import extend_path
__path__ = extend_path(__path__, __name__)

import abc
import builtins
import datetime
import enum
import typing

import jsii
import publication
import typing_extensions

from jsii._type_checking import cached_type_hints, check_type


from ._jsii import *

class _LazyImport:
    def __init__(self, module_name: str) -> None:
        self._module_name = module_name
        self._module: typing.Any = None
    def __getattr__(self, name: str) -> typing.Any:
        if self._module is None:
            import importlib
            self._module = importlib.import_module(self._module_name)
        return getattr(self._module, name)

if typing.TYPE_CHECKING:

    import cdk8s as _cdk8s_d3d9af27
    import constructs as _constructs_77d1e7e8
else:

    _cdk8s_d3d9af27 = _LazyImport("cdk8s")
    _constructs_77d1e7e8 = _LazyImport("constructs")


class PodMonitor(
    _cdk8s_d3d9af27.ApiObject,
    metaclass=jsii.JSIIMeta,
    jsii_type="comcoreosmonitoring.PodMonitor",
):
    '''
    :schema: PodMonitor
    '''

    def __init__(
        self,
        scope: "_constructs_77d1e7e8.Construct",
        id: builtins.str,
        *,
        spec: typing.Union["PodMonitorSpec", typing.Dict[builtins.str, typing.Any]],
        metadata: typing.Optional[typing.Union["_cdk8s_d3d9af27.ApiObjectMetadata", typing.Dict[builtins.str, typing.Any]]] = None,
    ) -> None:
        '''Defines a "PodMonitor" API object.

        :param scope: the scope in which to define this object.
        :param id: a scope-local name for the object.
        :param spec: 
        :param metadata: 
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__4386e5e7b16cd06c6dea31e4f9d3a465062ae2fc79fc17d9b5ad62158a2479b1)
            check_type(argname="argument scope", value=scope, expected_type=type_hints["scope"])
            check_type(argname="argument id", value=id, expected_type=type_hints["id"])
        props = PodMonitorProps(spec=spec, metadata=metadata)

        jsii.create(self.__class__, self, [scope, id, props])

    @jsii.member(jsii_name="manifest")
    @builtins.classmethod
    def manifest(
        cls,
        *,
        spec: typing.Union["PodMonitorSpec", typing.Dict[builtins.str, typing.Any]],
        metadata: typing.Optional[typing.Union["_cdk8s_d3d9af27.ApiObjectMetadata", typing.Dict[builtins.str, typing.Any]]] = None,
    ) -> typing.Any:
        '''Renders a Kubernetes manifest for "PodMonitor".

        This can be used to inline resource manifests inside other objects (e.g. as templates).

        :param spec: 
        :param metadata: 
        '''
        props = PodMonitorProps(spec=spec, metadata=metadata)

        return typing.cast(typing.Any, jsii.sinvoke(cls, "manifest", [props]))

    @jsii.member(jsii_name="toJson")
    def to_json(self) -> typing.Any:
        '''Renders the object to Kubernetes JSON.'''
        return typing.cast(typing.Any, jsii.invoke(self, "toJson", []))

    @jsii.python.classproperty
    @jsii.member(jsii_name="GVK")
    def GVK(cls) -> "_cdk8s_d3d9af27.GroupVersionKind":
        '''Returns the apiVersion and kind for "PodMonitor".'''
        return typing.cast("_cdk8s_d3d9af27.GroupVersionKind", jsii.sget(cls, "GVK"))


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PodMonitorProps",
    jsii_struct_bases=[],
    name_mapping={"spec": "spec", "metadata": "metadata"},
)
class PodMonitorProps:
    def __init__(
        self,
        *,
        spec: typing.Union["PodMonitorSpec", typing.Dict[builtins.str, typing.Any]],
        metadata: typing.Optional[typing.Union["_cdk8s_d3d9af27.ApiObjectMetadata", typing.Dict[builtins.str, typing.Any]]] = None,
    ) -> None:
        '''
        :param spec: 
        :param metadata: 

        :schema: PodMonitor
        '''
        if isinstance(spec, dict):
            spec = PodMonitorSpec(**spec)
        if isinstance(metadata, dict):
            metadata = _cdk8s_d3d9af27.ApiObjectMetadata(**metadata)
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__000289246622513cc68c28097b13cc8f7e26acde7c493f0f44c1bc1caaef8375)
            check_type(argname="argument spec", value=spec, expected_type=type_hints["spec"])
            check_type(argname="argument metadata", value=metadata, expected_type=type_hints["metadata"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "spec": spec,
        }
        if metadata is not None:
            self._values["metadata"] = metadata

    @builtins.property
    def spec(self) -> "PodMonitorSpec":
        '''
        :schema: PodMonitor#spec
        '''
        result = self._values.get("spec")
        assert result is not None, "Required property 'spec' is missing"
        return typing.cast("PodMonitorSpec", result)

    @builtins.property
    def metadata(self) -> typing.Optional["_cdk8s_d3d9af27.ApiObjectMetadata"]:
        '''
        :schema: PodMonitor#metadata
        '''
        result = self._values.get("metadata")
        return typing.cast(typing.Optional["_cdk8s_d3d9af27.ApiObjectMetadata"], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PodMonitorProps(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PodMonitorSpec",
    jsii_struct_bases=[],
    name_mapping={
        "selector": "selector",
        "attach_metadata": "attachMetadata",
        "body_size_limit": "bodySizeLimit",
        "convert_classic_histograms_to_nhcb": "convertClassicHistogramsToNhcb",
        "fallback_scrape_protocol": "fallbackScrapeProtocol",
        "job_label": "jobLabel",
        "keep_dropped_targets": "keepDroppedTargets",
        "label_limit": "labelLimit",
        "label_name_length_limit": "labelNameLengthLimit",
        "label_value_length_limit": "labelValueLengthLimit",
        "namespace_selector": "namespaceSelector",
        "native_histogram_bucket_limit": "nativeHistogramBucketLimit",
        "native_histogram_min_bucket_factor": "nativeHistogramMinBucketFactor",
        "pod_metrics_endpoints": "podMetricsEndpoints",
        "pod_target_labels": "podTargetLabels",
        "sample_limit": "sampleLimit",
        "scrape_class": "scrapeClass",
        "scrape_classic_histograms": "scrapeClassicHistograms",
        "scrape_native_histograms": "scrapeNativeHistograms",
        "scrape_protocols": "scrapeProtocols",
        "selector_mechanism": "selectorMechanism",
        "target_limit": "targetLimit",
    },
)
class PodMonitorSpec:
    def __init__(
        self,
        *,
        selector: typing.Union["PodMonitorSpecSelector", typing.Dict[builtins.str, typing.Any]],
        attach_metadata: typing.Optional[typing.Union["PodMonitorSpecAttachMetadata", typing.Dict[builtins.str, typing.Any]]] = None,
        body_size_limit: typing.Optional[builtins.str] = None,
        convert_classic_histograms_to_nhcb: typing.Optional[builtins.bool] = None,
        fallback_scrape_protocol: typing.Optional["PodMonitorSpecFallbackScrapeProtocol"] = None,
        job_label: typing.Optional[builtins.str] = None,
        keep_dropped_targets: typing.Optional[jsii.Number] = None,
        label_limit: typing.Optional[jsii.Number] = None,
        label_name_length_limit: typing.Optional[jsii.Number] = None,
        label_value_length_limit: typing.Optional[jsii.Number] = None,
        namespace_selector: typing.Optional[typing.Union["PodMonitorSpecNamespaceSelector", typing.Dict[builtins.str, typing.Any]]] = None,
        native_histogram_bucket_limit: typing.Optional[jsii.Number] = None,
        native_histogram_min_bucket_factor: typing.Optional["PodMonitorSpecNativeHistogramMinBucketFactor"] = None,
        pod_metrics_endpoints: typing.Optional[typing.Sequence[typing.Union["PodMonitorSpecPodMetricsEndpoints", typing.Dict[builtins.str, typing.Any]]]] = None,
        pod_target_labels: typing.Optional[typing.Sequence[builtins.str]] = None,
        sample_limit: typing.Optional[jsii.Number] = None,
        scrape_class: typing.Optional[builtins.str] = None,
        scrape_classic_histograms: typing.Optional[builtins.bool] = None,
        scrape_native_histograms: typing.Optional[builtins.bool] = None,
        scrape_protocols: typing.Optional[typing.Sequence["PodMonitorSpecScrapeProtocols"]] = None,
        selector_mechanism: typing.Optional["PodMonitorSpecSelectorMechanism"] = None,
        target_limit: typing.Optional[jsii.Number] = None,
    ) -> None:
        '''
        :param selector: 
        :param attach_metadata: 
        :param body_size_limit: 
        :param convert_classic_histograms_to_nhcb: 
        :param fallback_scrape_protocol: 
        :param job_label: 
        :param keep_dropped_targets: 
        :param label_limit: 
        :param label_name_length_limit: 
        :param label_value_length_limit: 
        :param namespace_selector: 
        :param native_histogram_bucket_limit: 
        :param native_histogram_min_bucket_factor: 
        :param pod_metrics_endpoints: 
        :param pod_target_labels: 
        :param sample_limit: 
        :param scrape_class: 
        :param scrape_classic_histograms: 
        :param scrape_native_histograms: 
        :param scrape_protocols: 
        :param selector_mechanism: 
        :param target_limit: 

        :schema: PodMonitorSpec
        '''
        if isinstance(selector, dict):
            selector = PodMonitorSpecSelector(**selector)
        if isinstance(attach_metadata, dict):
            attach_metadata = PodMonitorSpecAttachMetadata(**attach_metadata)
        if isinstance(namespace_selector, dict):
            namespace_selector = PodMonitorSpecNamespaceSelector(**namespace_selector)
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__d0fc366a7b37e8f5ef77cf5c54a58cc0785b1b082756c925b98a051159c271b2)
            check_type(argname="argument selector", value=selector, expected_type=type_hints["selector"])
            check_type(argname="argument attach_metadata", value=attach_metadata, expected_type=type_hints["attach_metadata"])
            check_type(argname="argument body_size_limit", value=body_size_limit, expected_type=type_hints["body_size_limit"])
            check_type(argname="argument convert_classic_histograms_to_nhcb", value=convert_classic_histograms_to_nhcb, expected_type=type_hints["convert_classic_histograms_to_nhcb"])
            check_type(argname="argument fallback_scrape_protocol", value=fallback_scrape_protocol, expected_type=type_hints["fallback_scrape_protocol"])
            check_type(argname="argument job_label", value=job_label, expected_type=type_hints["job_label"])
            check_type(argname="argument keep_dropped_targets", value=keep_dropped_targets, expected_type=type_hints["keep_dropped_targets"])
            check_type(argname="argument label_limit", value=label_limit, expected_type=type_hints["label_limit"])
            check_type(argname="argument label_name_length_limit", value=label_name_length_limit, expected_type=type_hints["label_name_length_limit"])
            check_type(argname="argument label_value_length_limit", value=label_value_length_limit, expected_type=type_hints["label_value_length_limit"])
            check_type(argname="argument namespace_selector", value=namespace_selector, expected_type=type_hints["namespace_selector"])
            check_type(argname="argument native_histogram_bucket_limit", value=native_histogram_bucket_limit, expected_type=type_hints["native_histogram_bucket_limit"])
            check_type(argname="argument native_histogram_min_bucket_factor", value=native_histogram_min_bucket_factor, expected_type=type_hints["native_histogram_min_bucket_factor"])
            check_type(argname="argument pod_metrics_endpoints", value=pod_metrics_endpoints, expected_type=type_hints["pod_metrics_endpoints"])
            check_type(argname="argument pod_target_labels", value=pod_target_labels, expected_type=type_hints["pod_target_labels"])
            check_type(argname="argument sample_limit", value=sample_limit, expected_type=type_hints["sample_limit"])
            check_type(argname="argument scrape_class", value=scrape_class, expected_type=type_hints["scrape_class"])
            check_type(argname="argument scrape_classic_histograms", value=scrape_classic_histograms, expected_type=type_hints["scrape_classic_histograms"])
            check_type(argname="argument scrape_native_histograms", value=scrape_native_histograms, expected_type=type_hints["scrape_native_histograms"])
            check_type(argname="argument scrape_protocols", value=scrape_protocols, expected_type=type_hints["scrape_protocols"])
            check_type(argname="argument selector_mechanism", value=selector_mechanism, expected_type=type_hints["selector_mechanism"])
            check_type(argname="argument target_limit", value=target_limit, expected_type=type_hints["target_limit"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "selector": selector,
        }
        if attach_metadata is not None:
            self._values["attach_metadata"] = attach_metadata
        if body_size_limit is not None:
            self._values["body_size_limit"] = body_size_limit
        if convert_classic_histograms_to_nhcb is not None:
            self._values["convert_classic_histograms_to_nhcb"] = convert_classic_histograms_to_nhcb
        if fallback_scrape_protocol is not None:
            self._values["fallback_scrape_protocol"] = fallback_scrape_protocol
        if job_label is not None:
            self._values["job_label"] = job_label
        if keep_dropped_targets is not None:
            self._values["keep_dropped_targets"] = keep_dropped_targets
        if label_limit is not None:
            self._values["label_limit"] = label_limit
        if label_name_length_limit is not None:
            self._values["label_name_length_limit"] = label_name_length_limit
        if label_value_length_limit is not None:
            self._values["label_value_length_limit"] = label_value_length_limit
        if namespace_selector is not None:
            self._values["namespace_selector"] = namespace_selector
        if native_histogram_bucket_limit is not None:
            self._values["native_histogram_bucket_limit"] = native_histogram_bucket_limit
        if native_histogram_min_bucket_factor is not None:
            self._values["native_histogram_min_bucket_factor"] = native_histogram_min_bucket_factor
        if pod_metrics_endpoints is not None:
            self._values["pod_metrics_endpoints"] = pod_metrics_endpoints
        if pod_target_labels is not None:
            self._values["pod_target_labels"] = pod_target_labels
        if sample_limit is not None:
            self._values["sample_limit"] = sample_limit
        if scrape_class is not None:
            self._values["scrape_class"] = scrape_class
        if scrape_classic_histograms is not None:
            self._values["scrape_classic_histograms"] = scrape_classic_histograms
        if scrape_native_histograms is not None:
            self._values["scrape_native_histograms"] = scrape_native_histograms
        if scrape_protocols is not None:
            self._values["scrape_protocols"] = scrape_protocols
        if selector_mechanism is not None:
            self._values["selector_mechanism"] = selector_mechanism
        if target_limit is not None:
            self._values["target_limit"] = target_limit

    @builtins.property
    def selector(self) -> "PodMonitorSpecSelector":
        '''
        :schema: PodMonitorSpec#selector
        '''
        result = self._values.get("selector")
        assert result is not None, "Required property 'selector' is missing"
        return typing.cast("PodMonitorSpecSelector", result)

    @builtins.property
    def attach_metadata(self) -> typing.Optional["PodMonitorSpecAttachMetadata"]:
        '''
        :schema: PodMonitorSpec#attachMetadata
        '''
        result = self._values.get("attach_metadata")
        return typing.cast(typing.Optional["PodMonitorSpecAttachMetadata"], result)

    @builtins.property
    def body_size_limit(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpec#bodySizeLimit
        '''
        result = self._values.get("body_size_limit")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def convert_classic_histograms_to_nhcb(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: PodMonitorSpec#convertClassicHistogramsToNHCB
        '''
        result = self._values.get("convert_classic_histograms_to_nhcb")
        return typing.cast(typing.Optional[builtins.bool], result)

    @builtins.property
    def fallback_scrape_protocol(
        self,
    ) -> typing.Optional["PodMonitorSpecFallbackScrapeProtocol"]:
        '''
        :schema: PodMonitorSpec#fallbackScrapeProtocol
        '''
        result = self._values.get("fallback_scrape_protocol")
        return typing.cast(typing.Optional["PodMonitorSpecFallbackScrapeProtocol"], result)

    @builtins.property
    def job_label(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpec#jobLabel
        '''
        result = self._values.get("job_label")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def keep_dropped_targets(self) -> typing.Optional[jsii.Number]:
        '''
        :schema: PodMonitorSpec#keepDroppedTargets
        '''
        result = self._values.get("keep_dropped_targets")
        return typing.cast(typing.Optional[jsii.Number], result)

    @builtins.property
    def label_limit(self) -> typing.Optional[jsii.Number]:
        '''
        :schema: PodMonitorSpec#labelLimit
        '''
        result = self._values.get("label_limit")
        return typing.cast(typing.Optional[jsii.Number], result)

    @builtins.property
    def label_name_length_limit(self) -> typing.Optional[jsii.Number]:
        '''
        :schema: PodMonitorSpec#labelNameLengthLimit
        '''
        result = self._values.get("label_name_length_limit")
        return typing.cast(typing.Optional[jsii.Number], result)

    @builtins.property
    def label_value_length_limit(self) -> typing.Optional[jsii.Number]:
        '''
        :schema: PodMonitorSpec#labelValueLengthLimit
        '''
        result = self._values.get("label_value_length_limit")
        return typing.cast(typing.Optional[jsii.Number], result)

    @builtins.property
    def namespace_selector(self) -> typing.Optional["PodMonitorSpecNamespaceSelector"]:
        '''
        :schema: PodMonitorSpec#namespaceSelector
        '''
        result = self._values.get("namespace_selector")
        return typing.cast(typing.Optional["PodMonitorSpecNamespaceSelector"], result)

    @builtins.property
    def native_histogram_bucket_limit(self) -> typing.Optional[jsii.Number]:
        '''
        :schema: PodMonitorSpec#nativeHistogramBucketLimit
        '''
        result = self._values.get("native_histogram_bucket_limit")
        return typing.cast(typing.Optional[jsii.Number], result)

    @builtins.property
    def native_histogram_min_bucket_factor(
        self,
    ) -> typing.Optional["PodMonitorSpecNativeHistogramMinBucketFactor"]:
        '''
        :schema: PodMonitorSpec#nativeHistogramMinBucketFactor
        '''
        result = self._values.get("native_histogram_min_bucket_factor")
        return typing.cast(typing.Optional["PodMonitorSpecNativeHistogramMinBucketFactor"], result)

    @builtins.property
    def pod_metrics_endpoints(
        self,
    ) -> typing.Optional[typing.List["PodMonitorSpecPodMetricsEndpoints"]]:
        '''
        :schema: PodMonitorSpec#podMetricsEndpoints
        '''
        result = self._values.get("pod_metrics_endpoints")
        return typing.cast(typing.Optional[typing.List["PodMonitorSpecPodMetricsEndpoints"]], result)

    @builtins.property
    def pod_target_labels(self) -> typing.Optional[typing.List[builtins.str]]:
        '''
        :schema: PodMonitorSpec#podTargetLabels
        '''
        result = self._values.get("pod_target_labels")
        return typing.cast(typing.Optional[typing.List[builtins.str]], result)

    @builtins.property
    def sample_limit(self) -> typing.Optional[jsii.Number]:
        '''
        :schema: PodMonitorSpec#sampleLimit
        '''
        result = self._values.get("sample_limit")
        return typing.cast(typing.Optional[jsii.Number], result)

    @builtins.property
    def scrape_class(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpec#scrapeClass
        '''
        result = self._values.get("scrape_class")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def scrape_classic_histograms(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: PodMonitorSpec#scrapeClassicHistograms
        '''
        result = self._values.get("scrape_classic_histograms")
        return typing.cast(typing.Optional[builtins.bool], result)

    @builtins.property
    def scrape_native_histograms(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: PodMonitorSpec#scrapeNativeHistograms
        '''
        result = self._values.get("scrape_native_histograms")
        return typing.cast(typing.Optional[builtins.bool], result)

    @builtins.property
    def scrape_protocols(
        self,
    ) -> typing.Optional[typing.List["PodMonitorSpecScrapeProtocols"]]:
        '''
        :schema: PodMonitorSpec#scrapeProtocols
        '''
        result = self._values.get("scrape_protocols")
        return typing.cast(typing.Optional[typing.List["PodMonitorSpecScrapeProtocols"]], result)

    @builtins.property
    def selector_mechanism(self) -> typing.Optional["PodMonitorSpecSelectorMechanism"]:
        '''
        :schema: PodMonitorSpec#selectorMechanism
        '''
        result = self._values.get("selector_mechanism")
        return typing.cast(typing.Optional["PodMonitorSpecSelectorMechanism"], result)

    @builtins.property
    def target_limit(self) -> typing.Optional[jsii.Number]:
        '''
        :schema: PodMonitorSpec#targetLimit
        '''
        result = self._values.get("target_limit")
        return typing.cast(typing.Optional[jsii.Number], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PodMonitorSpec(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PodMonitorSpecAttachMetadata",
    jsii_struct_bases=[],
    name_mapping={"node": "node"},
)
class PodMonitorSpecAttachMetadata:
    def __init__(self, *, node: typing.Optional[builtins.bool] = None) -> None:
        '''
        :param node: 

        :schema: PodMonitorSpecAttachMetadata
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__9cf64863d1802b45c7cc10241d6586998686fc854a54b782affcff9ec3743340)
            check_type(argname="argument node", value=node, expected_type=type_hints["node"])
        self._values: typing.Dict[builtins.str, typing.Any] = {}
        if node is not None:
            self._values["node"] = node

    @builtins.property
    def node(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: PodMonitorSpecAttachMetadata#node
        '''
        result = self._values.get("node")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PodMonitorSpecAttachMetadata(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.enum(jsii_type="comcoreosmonitoring.PodMonitorSpecFallbackScrapeProtocol")
class PodMonitorSpecFallbackScrapeProtocol(enum.Enum):
    '''
    :schema: PodMonitorSpecFallbackScrapeProtocol
    '''

    PROMETHEUS_PROTO = "PROMETHEUS_PROTO"
    '''PrometheusProto.'''
    OPEN_METRICS_TEXT0_0_1 = "OPEN_METRICS_TEXT0_0_1"
    '''OpenMetricsText0.0.1.'''
    OPEN_METRICS_TEXT1_0_0 = "OPEN_METRICS_TEXT1_0_0"
    '''OpenMetricsText1.0.0.'''
    PROMETHEUS_TEXT0_0_4 = "PROMETHEUS_TEXT0_0_4"
    '''PrometheusText0.0.4.'''
    PROMETHEUS_TEXT1_0_0 = "PROMETHEUS_TEXT1_0_0"
    '''PrometheusText1.0.0.'''


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PodMonitorSpecNamespaceSelector",
    jsii_struct_bases=[],
    name_mapping={"any": "any", "match_names": "matchNames"},
)
class PodMonitorSpecNamespaceSelector:
    def __init__(
        self,
        *,
        any: typing.Optional[builtins.bool] = None,
        match_names: typing.Optional[typing.Sequence[builtins.str]] = None,
    ) -> None:
        '''
        :param any: 
        :param match_names: 

        :schema: PodMonitorSpecNamespaceSelector
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__524d04d3a7bd18ec278a8abacd46bb31235156344174cf6cbd345d16acc9b446)
            check_type(argname="argument any", value=any, expected_type=type_hints["any"])
            check_type(argname="argument match_names", value=match_names, expected_type=type_hints["match_names"])
        self._values: typing.Dict[builtins.str, typing.Any] = {}
        if any is not None:
            self._values["any"] = any
        if match_names is not None:
            self._values["match_names"] = match_names

    @builtins.property
    def any(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: PodMonitorSpecNamespaceSelector#any
        '''
        result = self._values.get("any")
        return typing.cast(typing.Optional[builtins.bool], result)

    @builtins.property
    def match_names(self) -> typing.Optional[typing.List[builtins.str]]:
        '''
        :schema: PodMonitorSpecNamespaceSelector#matchNames
        '''
        result = self._values.get("match_names")
        return typing.cast(typing.Optional[typing.List[builtins.str]], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PodMonitorSpecNamespaceSelector(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


class PodMonitorSpecNativeHistogramMinBucketFactor(
    metaclass=jsii.JSIIMeta,
    jsii_type="comcoreosmonitoring.PodMonitorSpecNativeHistogramMinBucketFactor",
):
    '''
    :schema: PodMonitorSpecNativeHistogramMinBucketFactor
    '''

    @jsii.member(jsii_name="fromNumber")
    @builtins.classmethod
    def from_number(
        cls,
        value: jsii.Number,
    ) -> "PodMonitorSpecNativeHistogramMinBucketFactor":
        '''
        :param value: -
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__229ab31a16e6b3ca0ce438cadb42963caccecaa6cf4a908753c50ab28891979c)
            check_type(argname="argument value", value=value, expected_type=type_hints["value"])
        return typing.cast("PodMonitorSpecNativeHistogramMinBucketFactor", jsii.sinvoke(cls, "fromNumber", [value]))

    @jsii.member(jsii_name="fromString")
    @builtins.classmethod
    def from_string(
        cls,
        value: builtins.str,
    ) -> "PodMonitorSpecNativeHistogramMinBucketFactor":
        '''
        :param value: -
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__057dafa002ae2951724d3b9ff0b4cda82d62c6082387b619ecbb5c5433e32c53)
            check_type(argname="argument value", value=value, expected_type=type_hints["value"])
        return typing.cast("PodMonitorSpecNativeHistogramMinBucketFactor", jsii.sinvoke(cls, "fromString", [value]))

    @builtins.property
    @jsii.member(jsii_name="value")
    def value(self) -> typing.Union[builtins.str, jsii.Number]:
        return typing.cast(typing.Union[builtins.str, jsii.Number], jsii.get(self, "value"))


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpoints",
    jsii_struct_bases=[],
    name_mapping={
        "authorization": "authorization",
        "basic_auth": "basicAuth",
        "bearer_token_secret": "bearerTokenSecret",
        "enable_http2": "enableHttp2",
        "filter_running": "filterRunning",
        "follow_redirects": "followRedirects",
        "honor_labels": "honorLabels",
        "honor_timestamps": "honorTimestamps",
        "interval": "interval",
        "metric_relabelings": "metricRelabelings",
        "no_proxy": "noProxy",
        "oauth2": "oauth2",
        "params": "params",
        "path": "path",
        "port": "port",
        "port_number": "portNumber",
        "proxy_connect_header": "proxyConnectHeader",
        "proxy_from_environment": "proxyFromEnvironment",
        "proxy_url": "proxyUrl",
        "relabelings": "relabelings",
        "scheme": "scheme",
        "scrape_timeout": "scrapeTimeout",
        "target_port": "targetPort",
        "tls_config": "tlsConfig",
        "track_timestamps_staleness": "trackTimestampsStaleness",
    },
)
class PodMonitorSpecPodMetricsEndpoints:
    def __init__(
        self,
        *,
        authorization: typing.Optional[typing.Union["PodMonitorSpecPodMetricsEndpointsAuthorization", typing.Dict[builtins.str, typing.Any]]] = None,
        basic_auth: typing.Optional[typing.Union["PodMonitorSpecPodMetricsEndpointsBasicAuth", typing.Dict[builtins.str, typing.Any]]] = None,
        bearer_token_secret: typing.Optional[typing.Union["PodMonitorSpecPodMetricsEndpointsBearerTokenSecret", typing.Dict[builtins.str, typing.Any]]] = None,
        enable_http2: typing.Optional[builtins.bool] = None,
        filter_running: typing.Optional[builtins.bool] = None,
        follow_redirects: typing.Optional[builtins.bool] = None,
        honor_labels: typing.Optional[builtins.bool] = None,
        honor_timestamps: typing.Optional[builtins.bool] = None,
        interval: typing.Optional[builtins.str] = None,
        metric_relabelings: typing.Optional[typing.Sequence[typing.Union["PodMonitorSpecPodMetricsEndpointsMetricRelabelings", typing.Dict[builtins.str, typing.Any]]]] = None,
        no_proxy: typing.Optional[builtins.str] = None,
        oauth2: typing.Optional[typing.Union["PodMonitorSpecPodMetricsEndpointsOauth2", typing.Dict[builtins.str, typing.Any]]] = None,
        params: typing.Optional[typing.Mapping[builtins.str, typing.Sequence[builtins.str]]] = None,
        path: typing.Optional[builtins.str] = None,
        port: typing.Optional[builtins.str] = None,
        port_number: typing.Optional[jsii.Number] = None,
        proxy_connect_header: typing.Optional[typing.Mapping[builtins.str, typing.Sequence[typing.Union["PodMonitorSpecPodMetricsEndpointsProxyConnectHeader", typing.Dict[builtins.str, typing.Any]]]]] = None,
        proxy_from_environment: typing.Optional[builtins.bool] = None,
        proxy_url: typing.Optional[builtins.str] = None,
        relabelings: typing.Optional[typing.Sequence[typing.Union["PodMonitorSpecPodMetricsEndpointsRelabelings", typing.Dict[builtins.str, typing.Any]]]] = None,
        scheme: typing.Optional["PodMonitorSpecPodMetricsEndpointsScheme"] = None,
        scrape_timeout: typing.Optional[builtins.str] = None,
        target_port: typing.Optional["PodMonitorSpecPodMetricsEndpointsTargetPort"] = None,
        tls_config: typing.Optional[typing.Union["PodMonitorSpecPodMetricsEndpointsTlsConfig", typing.Dict[builtins.str, typing.Any]]] = None,
        track_timestamps_staleness: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param authorization: 
        :param basic_auth: 
        :param bearer_token_secret: 
        :param enable_http2: 
        :param filter_running: 
        :param follow_redirects: 
        :param honor_labels: 
        :param honor_timestamps: 
        :param interval: 
        :param metric_relabelings: 
        :param no_proxy: 
        :param oauth2: 
        :param params: 
        :param path: 
        :param port: 
        :param port_number: 
        :param proxy_connect_header: 
        :param proxy_from_environment: 
        :param proxy_url: 
        :param relabelings: 
        :param scheme: 
        :param scrape_timeout: 
        :param target_port: 
        :param tls_config: 
        :param track_timestamps_staleness: 

        :schema: PodMonitorSpecPodMetricsEndpoints
        '''
        if isinstance(authorization, dict):
            authorization = PodMonitorSpecPodMetricsEndpointsAuthorization(**authorization)
        if isinstance(basic_auth, dict):
            basic_auth = PodMonitorSpecPodMetricsEndpointsBasicAuth(**basic_auth)
        if isinstance(bearer_token_secret, dict):
            bearer_token_secret = PodMonitorSpecPodMetricsEndpointsBearerTokenSecret(**bearer_token_secret)
        if isinstance(oauth2, dict):
            oauth2 = PodMonitorSpecPodMetricsEndpointsOauth2(**oauth2)
        if isinstance(tls_config, dict):
            tls_config = PodMonitorSpecPodMetricsEndpointsTlsConfig(**tls_config)
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__7fb85d56f42b3bca0c237a42a5b0bd2416f8ac5def6a889756ef8363478770ae)
            check_type(argname="argument authorization", value=authorization, expected_type=type_hints["authorization"])
            check_type(argname="argument basic_auth", value=basic_auth, expected_type=type_hints["basic_auth"])
            check_type(argname="argument bearer_token_secret", value=bearer_token_secret, expected_type=type_hints["bearer_token_secret"])
            check_type(argname="argument enable_http2", value=enable_http2, expected_type=type_hints["enable_http2"])
            check_type(argname="argument filter_running", value=filter_running, expected_type=type_hints["filter_running"])
            check_type(argname="argument follow_redirects", value=follow_redirects, expected_type=type_hints["follow_redirects"])
            check_type(argname="argument honor_labels", value=honor_labels, expected_type=type_hints["honor_labels"])
            check_type(argname="argument honor_timestamps", value=honor_timestamps, expected_type=type_hints["honor_timestamps"])
            check_type(argname="argument interval", value=interval, expected_type=type_hints["interval"])
            check_type(argname="argument metric_relabelings", value=metric_relabelings, expected_type=type_hints["metric_relabelings"])
            check_type(argname="argument no_proxy", value=no_proxy, expected_type=type_hints["no_proxy"])
            check_type(argname="argument oauth2", value=oauth2, expected_type=type_hints["oauth2"])
            check_type(argname="argument params", value=params, expected_type=type_hints["params"])
            check_type(argname="argument path", value=path, expected_type=type_hints["path"])
            check_type(argname="argument port", value=port, expected_type=type_hints["port"])
            check_type(argname="argument port_number", value=port_number, expected_type=type_hints["port_number"])
            check_type(argname="argument proxy_connect_header", value=proxy_connect_header, expected_type=type_hints["proxy_connect_header"])
            check_type(argname="argument proxy_from_environment", value=proxy_from_environment, expected_type=type_hints["proxy_from_environment"])
            check_type(argname="argument proxy_url", value=proxy_url, expected_type=type_hints["proxy_url"])
            check_type(argname="argument relabelings", value=relabelings, expected_type=type_hints["relabelings"])
            check_type(argname="argument scheme", value=scheme, expected_type=type_hints["scheme"])
            check_type(argname="argument scrape_timeout", value=scrape_timeout, expected_type=type_hints["scrape_timeout"])
            check_type(argname="argument target_port", value=target_port, expected_type=type_hints["target_port"])
            check_type(argname="argument tls_config", value=tls_config, expected_type=type_hints["tls_config"])
            check_type(argname="argument track_timestamps_staleness", value=track_timestamps_staleness, expected_type=type_hints["track_timestamps_staleness"])
        self._values: typing.Dict[builtins.str, typing.Any] = {}
        if authorization is not None:
            self._values["authorization"] = authorization
        if basic_auth is not None:
            self._values["basic_auth"] = basic_auth
        if bearer_token_secret is not None:
            self._values["bearer_token_secret"] = bearer_token_secret
        if enable_http2 is not None:
            self._values["enable_http2"] = enable_http2
        if filter_running is not None:
            self._values["filter_running"] = filter_running
        if follow_redirects is not None:
            self._values["follow_redirects"] = follow_redirects
        if honor_labels is not None:
            self._values["honor_labels"] = honor_labels
        if honor_timestamps is not None:
            self._values["honor_timestamps"] = honor_timestamps
        if interval is not None:
            self._values["interval"] = interval
        if metric_relabelings is not None:
            self._values["metric_relabelings"] = metric_relabelings
        if no_proxy is not None:
            self._values["no_proxy"] = no_proxy
        if oauth2 is not None:
            self._values["oauth2"] = oauth2
        if params is not None:
            self._values["params"] = params
        if path is not None:
            self._values["path"] = path
        if port is not None:
            self._values["port"] = port
        if port_number is not None:
            self._values["port_number"] = port_number
        if proxy_connect_header is not None:
            self._values["proxy_connect_header"] = proxy_connect_header
        if proxy_from_environment is not None:
            self._values["proxy_from_environment"] = proxy_from_environment
        if proxy_url is not None:
            self._values["proxy_url"] = proxy_url
        if relabelings is not None:
            self._values["relabelings"] = relabelings
        if scheme is not None:
            self._values["scheme"] = scheme
        if scrape_timeout is not None:
            self._values["scrape_timeout"] = scrape_timeout
        if target_port is not None:
            self._values["target_port"] = target_port
        if tls_config is not None:
            self._values["tls_config"] = tls_config
        if track_timestamps_staleness is not None:
            self._values["track_timestamps_staleness"] = track_timestamps_staleness

    @builtins.property
    def authorization(
        self,
    ) -> typing.Optional["PodMonitorSpecPodMetricsEndpointsAuthorization"]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpoints#authorization
        '''
        result = self._values.get("authorization")
        return typing.cast(typing.Optional["PodMonitorSpecPodMetricsEndpointsAuthorization"], result)

    @builtins.property
    def basic_auth(
        self,
    ) -> typing.Optional["PodMonitorSpecPodMetricsEndpointsBasicAuth"]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpoints#basicAuth
        '''
        result = self._values.get("basic_auth")
        return typing.cast(typing.Optional["PodMonitorSpecPodMetricsEndpointsBasicAuth"], result)

    @builtins.property
    def bearer_token_secret(
        self,
    ) -> typing.Optional["PodMonitorSpecPodMetricsEndpointsBearerTokenSecret"]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpoints#bearerTokenSecret
        '''
        result = self._values.get("bearer_token_secret")
        return typing.cast(typing.Optional["PodMonitorSpecPodMetricsEndpointsBearerTokenSecret"], result)

    @builtins.property
    def enable_http2(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpoints#enableHttp2
        '''
        result = self._values.get("enable_http2")
        return typing.cast(typing.Optional[builtins.bool], result)

    @builtins.property
    def filter_running(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpoints#filterRunning
        '''
        result = self._values.get("filter_running")
        return typing.cast(typing.Optional[builtins.bool], result)

    @builtins.property
    def follow_redirects(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpoints#followRedirects
        '''
        result = self._values.get("follow_redirects")
        return typing.cast(typing.Optional[builtins.bool], result)

    @builtins.property
    def honor_labels(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpoints#honorLabels
        '''
        result = self._values.get("honor_labels")
        return typing.cast(typing.Optional[builtins.bool], result)

    @builtins.property
    def honor_timestamps(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpoints#honorTimestamps
        '''
        result = self._values.get("honor_timestamps")
        return typing.cast(typing.Optional[builtins.bool], result)

    @builtins.property
    def interval(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpoints#interval
        '''
        result = self._values.get("interval")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def metric_relabelings(
        self,
    ) -> typing.Optional[typing.List["PodMonitorSpecPodMetricsEndpointsMetricRelabelings"]]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpoints#metricRelabelings
        '''
        result = self._values.get("metric_relabelings")
        return typing.cast(typing.Optional[typing.List["PodMonitorSpecPodMetricsEndpointsMetricRelabelings"]], result)

    @builtins.property
    def no_proxy(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpoints#noProxy
        '''
        result = self._values.get("no_proxy")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def oauth2(self) -> typing.Optional["PodMonitorSpecPodMetricsEndpointsOauth2"]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpoints#oauth2
        '''
        result = self._values.get("oauth2")
        return typing.cast(typing.Optional["PodMonitorSpecPodMetricsEndpointsOauth2"], result)

    @builtins.property
    def params(
        self,
    ) -> typing.Optional[typing.Mapping[builtins.str, typing.List[builtins.str]]]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpoints#params
        '''
        result = self._values.get("params")
        return typing.cast(typing.Optional[typing.Mapping[builtins.str, typing.List[builtins.str]]], result)

    @builtins.property
    def path(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpoints#path
        '''
        result = self._values.get("path")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def port(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpoints#port
        '''
        result = self._values.get("port")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def port_number(self) -> typing.Optional[jsii.Number]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpoints#portNumber
        '''
        result = self._values.get("port_number")
        return typing.cast(typing.Optional[jsii.Number], result)

    @builtins.property
    def proxy_connect_header(
        self,
    ) -> typing.Optional[typing.Mapping[builtins.str, typing.List["PodMonitorSpecPodMetricsEndpointsProxyConnectHeader"]]]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpoints#proxyConnectHeader
        '''
        result = self._values.get("proxy_connect_header")
        return typing.cast(typing.Optional[typing.Mapping[builtins.str, typing.List["PodMonitorSpecPodMetricsEndpointsProxyConnectHeader"]]], result)

    @builtins.property
    def proxy_from_environment(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpoints#proxyFromEnvironment
        '''
        result = self._values.get("proxy_from_environment")
        return typing.cast(typing.Optional[builtins.bool], result)

    @builtins.property
    def proxy_url(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpoints#proxyUrl
        '''
        result = self._values.get("proxy_url")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def relabelings(
        self,
    ) -> typing.Optional[typing.List["PodMonitorSpecPodMetricsEndpointsRelabelings"]]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpoints#relabelings
        '''
        result = self._values.get("relabelings")
        return typing.cast(typing.Optional[typing.List["PodMonitorSpecPodMetricsEndpointsRelabelings"]], result)

    @builtins.property
    def scheme(self) -> typing.Optional["PodMonitorSpecPodMetricsEndpointsScheme"]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpoints#scheme
        '''
        result = self._values.get("scheme")
        return typing.cast(typing.Optional["PodMonitorSpecPodMetricsEndpointsScheme"], result)

    @builtins.property
    def scrape_timeout(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpoints#scrapeTimeout
        '''
        result = self._values.get("scrape_timeout")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def target_port(
        self,
    ) -> typing.Optional["PodMonitorSpecPodMetricsEndpointsTargetPort"]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpoints#targetPort
        '''
        result = self._values.get("target_port")
        return typing.cast(typing.Optional["PodMonitorSpecPodMetricsEndpointsTargetPort"], result)

    @builtins.property
    def tls_config(
        self,
    ) -> typing.Optional["PodMonitorSpecPodMetricsEndpointsTlsConfig"]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpoints#tlsConfig
        '''
        result = self._values.get("tls_config")
        return typing.cast(typing.Optional["PodMonitorSpecPodMetricsEndpointsTlsConfig"], result)

    @builtins.property
    def track_timestamps_staleness(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpoints#trackTimestampsStaleness
        '''
        result = self._values.get("track_timestamps_staleness")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PodMonitorSpecPodMetricsEndpoints(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpointsAuthorization",
    jsii_struct_bases=[],
    name_mapping={"credentials": "credentials", "type": "type"},
)
class PodMonitorSpecPodMetricsEndpointsAuthorization:
    def __init__(
        self,
        *,
        credentials: typing.Optional[typing.Union["PodMonitorSpecPodMetricsEndpointsAuthorizationCredentials", typing.Dict[builtins.str, typing.Any]]] = None,
        type: typing.Optional[builtins.str] = None,
    ) -> None:
        '''
        :param credentials: 
        :param type: 

        :schema: PodMonitorSpecPodMetricsEndpointsAuthorization
        '''
        if isinstance(credentials, dict):
            credentials = PodMonitorSpecPodMetricsEndpointsAuthorizationCredentials(**credentials)
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__7184130e0297603890994638cf3fe105c324522636329be7d365b4caa99baf1b)
            check_type(argname="argument credentials", value=credentials, expected_type=type_hints["credentials"])
            check_type(argname="argument type", value=type, expected_type=type_hints["type"])
        self._values: typing.Dict[builtins.str, typing.Any] = {}
        if credentials is not None:
            self._values["credentials"] = credentials
        if type is not None:
            self._values["type"] = type

    @builtins.property
    def credentials(
        self,
    ) -> typing.Optional["PodMonitorSpecPodMetricsEndpointsAuthorizationCredentials"]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsAuthorization#credentials
        '''
        result = self._values.get("credentials")
        return typing.cast(typing.Optional["PodMonitorSpecPodMetricsEndpointsAuthorizationCredentials"], result)

    @builtins.property
    def type(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsAuthorization#type
        '''
        result = self._values.get("type")
        return typing.cast(typing.Optional[builtins.str], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PodMonitorSpecPodMetricsEndpointsAuthorization(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpointsAuthorizationCredentials",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "name": "name", "optional": "optional"},
)
class PodMonitorSpecPodMetricsEndpointsAuthorizationCredentials:
    def __init__(
        self,
        *,
        key: builtins.str,
        name: typing.Optional[builtins.str] = None,
        optional: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param key: 
        :param name: 
        :param optional: 

        :schema: PodMonitorSpecPodMetricsEndpointsAuthorizationCredentials
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__0fc9e45c008064de1a182658b1215f305d624b621698dc17112c99f6230def86)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument name", value=name, expected_type=type_hints["name"])
            check_type(argname="argument optional", value=optional, expected_type=type_hints["optional"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
        }
        if name is not None:
            self._values["name"] = name
        if optional is not None:
            self._values["optional"] = optional

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsAuthorizationCredentials#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsAuthorizationCredentials#name
        '''
        result = self._values.get("name")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def optional(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsAuthorizationCredentials#optional
        '''
        result = self._values.get("optional")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PodMonitorSpecPodMetricsEndpointsAuthorizationCredentials(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpointsBasicAuth",
    jsii_struct_bases=[],
    name_mapping={"password": "password", "username": "username"},
)
class PodMonitorSpecPodMetricsEndpointsBasicAuth:
    def __init__(
        self,
        *,
        password: typing.Optional[typing.Union["PodMonitorSpecPodMetricsEndpointsBasicAuthPassword", typing.Dict[builtins.str, typing.Any]]] = None,
        username: typing.Optional[typing.Union["PodMonitorSpecPodMetricsEndpointsBasicAuthUsername", typing.Dict[builtins.str, typing.Any]]] = None,
    ) -> None:
        '''
        :param password: 
        :param username: 

        :schema: PodMonitorSpecPodMetricsEndpointsBasicAuth
        '''
        if isinstance(password, dict):
            password = PodMonitorSpecPodMetricsEndpointsBasicAuthPassword(**password)
        if isinstance(username, dict):
            username = PodMonitorSpecPodMetricsEndpointsBasicAuthUsername(**username)
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__2545b437ad478bd4a6638548fde179c973c5c4a07ca4b29e3e6fe4a2f8c374d1)
            check_type(argname="argument password", value=password, expected_type=type_hints["password"])
            check_type(argname="argument username", value=username, expected_type=type_hints["username"])
        self._values: typing.Dict[builtins.str, typing.Any] = {}
        if password is not None:
            self._values["password"] = password
        if username is not None:
            self._values["username"] = username

    @builtins.property
    def password(
        self,
    ) -> typing.Optional["PodMonitorSpecPodMetricsEndpointsBasicAuthPassword"]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsBasicAuth#password
        '''
        result = self._values.get("password")
        return typing.cast(typing.Optional["PodMonitorSpecPodMetricsEndpointsBasicAuthPassword"], result)

    @builtins.property
    def username(
        self,
    ) -> typing.Optional["PodMonitorSpecPodMetricsEndpointsBasicAuthUsername"]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsBasicAuth#username
        '''
        result = self._values.get("username")
        return typing.cast(typing.Optional["PodMonitorSpecPodMetricsEndpointsBasicAuthUsername"], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PodMonitorSpecPodMetricsEndpointsBasicAuth(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpointsBasicAuthPassword",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "name": "name", "optional": "optional"},
)
class PodMonitorSpecPodMetricsEndpointsBasicAuthPassword:
    def __init__(
        self,
        *,
        key: builtins.str,
        name: typing.Optional[builtins.str] = None,
        optional: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param key: 
        :param name: 
        :param optional: 

        :schema: PodMonitorSpecPodMetricsEndpointsBasicAuthPassword
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__59c1d7d9d5a64249277716e8949dea960ddfecbfa6a66010bb60bf4e556f829a)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument name", value=name, expected_type=type_hints["name"])
            check_type(argname="argument optional", value=optional, expected_type=type_hints["optional"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
        }
        if name is not None:
            self._values["name"] = name
        if optional is not None:
            self._values["optional"] = optional

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsBasicAuthPassword#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsBasicAuthPassword#name
        '''
        result = self._values.get("name")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def optional(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsBasicAuthPassword#optional
        '''
        result = self._values.get("optional")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PodMonitorSpecPodMetricsEndpointsBasicAuthPassword(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpointsBasicAuthUsername",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "name": "name", "optional": "optional"},
)
class PodMonitorSpecPodMetricsEndpointsBasicAuthUsername:
    def __init__(
        self,
        *,
        key: builtins.str,
        name: typing.Optional[builtins.str] = None,
        optional: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param key: 
        :param name: 
        :param optional: 

        :schema: PodMonitorSpecPodMetricsEndpointsBasicAuthUsername
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__6fbcc8c05f43aa7082b960d633ba835fdc0c3116f38bc483452ed66a2f4b586c)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument name", value=name, expected_type=type_hints["name"])
            check_type(argname="argument optional", value=optional, expected_type=type_hints["optional"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
        }
        if name is not None:
            self._values["name"] = name
        if optional is not None:
            self._values["optional"] = optional

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsBasicAuthUsername#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsBasicAuthUsername#name
        '''
        result = self._values.get("name")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def optional(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsBasicAuthUsername#optional
        '''
        result = self._values.get("optional")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PodMonitorSpecPodMetricsEndpointsBasicAuthUsername(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpointsBearerTokenSecret",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "name": "name", "optional": "optional"},
)
class PodMonitorSpecPodMetricsEndpointsBearerTokenSecret:
    def __init__(
        self,
        *,
        key: builtins.str,
        name: typing.Optional[builtins.str] = None,
        optional: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param key: 
        :param name: 
        :param optional: 

        :schema: PodMonitorSpecPodMetricsEndpointsBearerTokenSecret
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__87fc4a5f5e8dcc46090ce0a9e6d5ab45228f3fff794c35c4e1d2bd64aaff816f)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument name", value=name, expected_type=type_hints["name"])
            check_type(argname="argument optional", value=optional, expected_type=type_hints["optional"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
        }
        if name is not None:
            self._values["name"] = name
        if optional is not None:
            self._values["optional"] = optional

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsBearerTokenSecret#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsBearerTokenSecret#name
        '''
        result = self._values.get("name")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def optional(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsBearerTokenSecret#optional
        '''
        result = self._values.get("optional")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PodMonitorSpecPodMetricsEndpointsBearerTokenSecret(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpointsMetricRelabelings",
    jsii_struct_bases=[],
    name_mapping={
        "action": "action",
        "modulus": "modulus",
        "regex": "regex",
        "replacement": "replacement",
        "separator": "separator",
        "source_labels": "sourceLabels",
        "target_label": "targetLabel",
    },
)
class PodMonitorSpecPodMetricsEndpointsMetricRelabelings:
    def __init__(
        self,
        *,
        action: typing.Optional["PodMonitorSpecPodMetricsEndpointsMetricRelabelingsAction"] = None,
        modulus: typing.Optional[jsii.Number] = None,
        regex: typing.Optional[builtins.str] = None,
        replacement: typing.Optional[builtins.str] = None,
        separator: typing.Optional[builtins.str] = None,
        source_labels: typing.Optional[typing.Sequence[builtins.str]] = None,
        target_label: typing.Optional[builtins.str] = None,
    ) -> None:
        '''
        :param action: 
        :param modulus: 
        :param regex: 
        :param replacement: 
        :param separator: 
        :param source_labels: 
        :param target_label: 

        :schema: PodMonitorSpecPodMetricsEndpointsMetricRelabelings
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__0d631237a06617099a9c0a422610a6cae1bbcadbd056a4f09156c9ab72fbebba)
            check_type(argname="argument action", value=action, expected_type=type_hints["action"])
            check_type(argname="argument modulus", value=modulus, expected_type=type_hints["modulus"])
            check_type(argname="argument regex", value=regex, expected_type=type_hints["regex"])
            check_type(argname="argument replacement", value=replacement, expected_type=type_hints["replacement"])
            check_type(argname="argument separator", value=separator, expected_type=type_hints["separator"])
            check_type(argname="argument source_labels", value=source_labels, expected_type=type_hints["source_labels"])
            check_type(argname="argument target_label", value=target_label, expected_type=type_hints["target_label"])
        self._values: typing.Dict[builtins.str, typing.Any] = {}
        if action is not None:
            self._values["action"] = action
        if modulus is not None:
            self._values["modulus"] = modulus
        if regex is not None:
            self._values["regex"] = regex
        if replacement is not None:
            self._values["replacement"] = replacement
        if separator is not None:
            self._values["separator"] = separator
        if source_labels is not None:
            self._values["source_labels"] = source_labels
        if target_label is not None:
            self._values["target_label"] = target_label

    @builtins.property
    def action(
        self,
    ) -> typing.Optional["PodMonitorSpecPodMetricsEndpointsMetricRelabelingsAction"]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsMetricRelabelings#action
        '''
        result = self._values.get("action")
        return typing.cast(typing.Optional["PodMonitorSpecPodMetricsEndpointsMetricRelabelingsAction"], result)

    @builtins.property
    def modulus(self) -> typing.Optional[jsii.Number]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsMetricRelabelings#modulus
        '''
        result = self._values.get("modulus")
        return typing.cast(typing.Optional[jsii.Number], result)

    @builtins.property
    def regex(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsMetricRelabelings#regex
        '''
        result = self._values.get("regex")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def replacement(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsMetricRelabelings#replacement
        '''
        result = self._values.get("replacement")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def separator(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsMetricRelabelings#separator
        '''
        result = self._values.get("separator")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def source_labels(self) -> typing.Optional[typing.List[builtins.str]]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsMetricRelabelings#sourceLabels
        '''
        result = self._values.get("source_labels")
        return typing.cast(typing.Optional[typing.List[builtins.str]], result)

    @builtins.property
    def target_label(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsMetricRelabelings#targetLabel
        '''
        result = self._values.get("target_label")
        return typing.cast(typing.Optional[builtins.str], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PodMonitorSpecPodMetricsEndpointsMetricRelabelings(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.enum(
    jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpointsMetricRelabelingsAction"
)
class PodMonitorSpecPodMetricsEndpointsMetricRelabelingsAction(enum.Enum):
    '''
    :schema: PodMonitorSpecPodMetricsEndpointsMetricRelabelingsAction
    '''

    REPLACE = "REPLACE"
    '''replace.'''
    KEEP = "KEEP"
    '''keep.'''
    DROP = "DROP"
    '''drop.'''
    HASHMOD = "HASHMOD"
    '''hashmod.'''
    LABELMAP = "LABELMAP"
    '''labelmap.'''
    LABELDROP = "LABELDROP"
    '''labeldrop.'''
    LABELKEEP = "LABELKEEP"
    '''labelkeep.'''
    LOWERCASE = "LOWERCASE"
    '''lowercase.'''
    UPPERCASE = "UPPERCASE"
    '''uppercase.'''
    KEEPEQUAL = "KEEPEQUAL"
    '''keepequal.'''
    DROPEQUAL = "DROPEQUAL"
    '''dropequal.'''


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpointsOauth2",
    jsii_struct_bases=[],
    name_mapping={
        "client_id": "clientId",
        "client_secret": "clientSecret",
        "token_url": "tokenUrl",
        "endpoint_params": "endpointParams",
        "no_proxy": "noProxy",
        "proxy_connect_header": "proxyConnectHeader",
        "proxy_from_environment": "proxyFromEnvironment",
        "proxy_url": "proxyUrl",
        "scopes": "scopes",
        "tls_config": "tlsConfig",
    },
)
class PodMonitorSpecPodMetricsEndpointsOauth2:
    def __init__(
        self,
        *,
        client_id: typing.Union["PodMonitorSpecPodMetricsEndpointsOauth2ClientId", typing.Dict[builtins.str, typing.Any]],
        client_secret: typing.Union["PodMonitorSpecPodMetricsEndpointsOauth2ClientSecret", typing.Dict[builtins.str, typing.Any]],
        token_url: builtins.str,
        endpoint_params: typing.Optional[typing.Mapping[builtins.str, builtins.str]] = None,
        no_proxy: typing.Optional[builtins.str] = None,
        proxy_connect_header: typing.Optional[typing.Mapping[builtins.str, typing.Sequence[typing.Union["PodMonitorSpecPodMetricsEndpointsOauth2ProxyConnectHeader", typing.Dict[builtins.str, typing.Any]]]]] = None,
        proxy_from_environment: typing.Optional[builtins.bool] = None,
        proxy_url: typing.Optional[builtins.str] = None,
        scopes: typing.Optional[typing.Sequence[builtins.str]] = None,
        tls_config: typing.Optional[typing.Union["PodMonitorSpecPodMetricsEndpointsOauth2TlsConfig", typing.Dict[builtins.str, typing.Any]]] = None,
    ) -> None:
        '''
        :param client_id: 
        :param client_secret: 
        :param token_url: 
        :param endpoint_params: 
        :param no_proxy: 
        :param proxy_connect_header: 
        :param proxy_from_environment: 
        :param proxy_url: 
        :param scopes: 
        :param tls_config: 

        :schema: PodMonitorSpecPodMetricsEndpointsOauth2
        '''
        if isinstance(client_id, dict):
            client_id = PodMonitorSpecPodMetricsEndpointsOauth2ClientId(**client_id)
        if isinstance(client_secret, dict):
            client_secret = PodMonitorSpecPodMetricsEndpointsOauth2ClientSecret(**client_secret)
        if isinstance(tls_config, dict):
            tls_config = PodMonitorSpecPodMetricsEndpointsOauth2TlsConfig(**tls_config)
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__81a00f959549bc5665afe503ca50462a36178f3d7bf8d2cb9022a048aa804912)
            check_type(argname="argument client_id", value=client_id, expected_type=type_hints["client_id"])
            check_type(argname="argument client_secret", value=client_secret, expected_type=type_hints["client_secret"])
            check_type(argname="argument token_url", value=token_url, expected_type=type_hints["token_url"])
            check_type(argname="argument endpoint_params", value=endpoint_params, expected_type=type_hints["endpoint_params"])
            check_type(argname="argument no_proxy", value=no_proxy, expected_type=type_hints["no_proxy"])
            check_type(argname="argument proxy_connect_header", value=proxy_connect_header, expected_type=type_hints["proxy_connect_header"])
            check_type(argname="argument proxy_from_environment", value=proxy_from_environment, expected_type=type_hints["proxy_from_environment"])
            check_type(argname="argument proxy_url", value=proxy_url, expected_type=type_hints["proxy_url"])
            check_type(argname="argument scopes", value=scopes, expected_type=type_hints["scopes"])
            check_type(argname="argument tls_config", value=tls_config, expected_type=type_hints["tls_config"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "client_id": client_id,
            "client_secret": client_secret,
            "token_url": token_url,
        }
        if endpoint_params is not None:
            self._values["endpoint_params"] = endpoint_params
        if no_proxy is not None:
            self._values["no_proxy"] = no_proxy
        if proxy_connect_header is not None:
            self._values["proxy_connect_header"] = proxy_connect_header
        if proxy_from_environment is not None:
            self._values["proxy_from_environment"] = proxy_from_environment
        if proxy_url is not None:
            self._values["proxy_url"] = proxy_url
        if scopes is not None:
            self._values["scopes"] = scopes
        if tls_config is not None:
            self._values["tls_config"] = tls_config

    @builtins.property
    def client_id(self) -> "PodMonitorSpecPodMetricsEndpointsOauth2ClientId":
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2#clientId
        '''
        result = self._values.get("client_id")
        assert result is not None, "Required property 'client_id' is missing"
        return typing.cast("PodMonitorSpecPodMetricsEndpointsOauth2ClientId", result)

    @builtins.property
    def client_secret(self) -> "PodMonitorSpecPodMetricsEndpointsOauth2ClientSecret":
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2#clientSecret
        '''
        result = self._values.get("client_secret")
        assert result is not None, "Required property 'client_secret' is missing"
        return typing.cast("PodMonitorSpecPodMetricsEndpointsOauth2ClientSecret", result)

    @builtins.property
    def token_url(self) -> builtins.str:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2#tokenUrl
        '''
        result = self._values.get("token_url")
        assert result is not None, "Required property 'token_url' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def endpoint_params(
        self,
    ) -> typing.Optional[typing.Mapping[builtins.str, builtins.str]]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2#endpointParams
        '''
        result = self._values.get("endpoint_params")
        return typing.cast(typing.Optional[typing.Mapping[builtins.str, builtins.str]], result)

    @builtins.property
    def no_proxy(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2#noProxy
        '''
        result = self._values.get("no_proxy")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def proxy_connect_header(
        self,
    ) -> typing.Optional[typing.Mapping[builtins.str, typing.List["PodMonitorSpecPodMetricsEndpointsOauth2ProxyConnectHeader"]]]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2#proxyConnectHeader
        '''
        result = self._values.get("proxy_connect_header")
        return typing.cast(typing.Optional[typing.Mapping[builtins.str, typing.List["PodMonitorSpecPodMetricsEndpointsOauth2ProxyConnectHeader"]]], result)

    @builtins.property
    def proxy_from_environment(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2#proxyFromEnvironment
        '''
        result = self._values.get("proxy_from_environment")
        return typing.cast(typing.Optional[builtins.bool], result)

    @builtins.property
    def proxy_url(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2#proxyUrl
        '''
        result = self._values.get("proxy_url")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def scopes(self) -> typing.Optional[typing.List[builtins.str]]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2#scopes
        '''
        result = self._values.get("scopes")
        return typing.cast(typing.Optional[typing.List[builtins.str]], result)

    @builtins.property
    def tls_config(
        self,
    ) -> typing.Optional["PodMonitorSpecPodMetricsEndpointsOauth2TlsConfig"]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2#tlsConfig
        '''
        result = self._values.get("tls_config")
        return typing.cast(typing.Optional["PodMonitorSpecPodMetricsEndpointsOauth2TlsConfig"], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PodMonitorSpecPodMetricsEndpointsOauth2(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpointsOauth2ClientId",
    jsii_struct_bases=[],
    name_mapping={"config_map": "configMap", "secret": "secret"},
)
class PodMonitorSpecPodMetricsEndpointsOauth2ClientId:
    def __init__(
        self,
        *,
        config_map: typing.Optional[typing.Union["PodMonitorSpecPodMetricsEndpointsOauth2ClientIdConfigMap", typing.Dict[builtins.str, typing.Any]]] = None,
        secret: typing.Optional[typing.Union["PodMonitorSpecPodMetricsEndpointsOauth2ClientIdSecret", typing.Dict[builtins.str, typing.Any]]] = None,
    ) -> None:
        '''
        :param config_map: 
        :param secret: 

        :schema: PodMonitorSpecPodMetricsEndpointsOauth2ClientId
        '''
        if isinstance(config_map, dict):
            config_map = PodMonitorSpecPodMetricsEndpointsOauth2ClientIdConfigMap(**config_map)
        if isinstance(secret, dict):
            secret = PodMonitorSpecPodMetricsEndpointsOauth2ClientIdSecret(**secret)
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__882a145d76f211b82a552985c279aaee476d78f66f81d883237f04627ae55e9d)
            check_type(argname="argument config_map", value=config_map, expected_type=type_hints["config_map"])
            check_type(argname="argument secret", value=secret, expected_type=type_hints["secret"])
        self._values: typing.Dict[builtins.str, typing.Any] = {}
        if config_map is not None:
            self._values["config_map"] = config_map
        if secret is not None:
            self._values["secret"] = secret

    @builtins.property
    def config_map(
        self,
    ) -> typing.Optional["PodMonitorSpecPodMetricsEndpointsOauth2ClientIdConfigMap"]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2ClientId#configMap
        '''
        result = self._values.get("config_map")
        return typing.cast(typing.Optional["PodMonitorSpecPodMetricsEndpointsOauth2ClientIdConfigMap"], result)

    @builtins.property
    def secret(
        self,
    ) -> typing.Optional["PodMonitorSpecPodMetricsEndpointsOauth2ClientIdSecret"]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2ClientId#secret
        '''
        result = self._values.get("secret")
        return typing.cast(typing.Optional["PodMonitorSpecPodMetricsEndpointsOauth2ClientIdSecret"], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PodMonitorSpecPodMetricsEndpointsOauth2ClientId(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpointsOauth2ClientIdConfigMap",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "name": "name", "optional": "optional"},
)
class PodMonitorSpecPodMetricsEndpointsOauth2ClientIdConfigMap:
    def __init__(
        self,
        *,
        key: builtins.str,
        name: typing.Optional[builtins.str] = None,
        optional: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param key: 
        :param name: 
        :param optional: 

        :schema: PodMonitorSpecPodMetricsEndpointsOauth2ClientIdConfigMap
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__a87e67e699e5bd318badc8319863c583b885290baab2c193d0f1ef2f2f226af5)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument name", value=name, expected_type=type_hints["name"])
            check_type(argname="argument optional", value=optional, expected_type=type_hints["optional"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
        }
        if name is not None:
            self._values["name"] = name
        if optional is not None:
            self._values["optional"] = optional

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2ClientIdConfigMap#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2ClientIdConfigMap#name
        '''
        result = self._values.get("name")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def optional(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2ClientIdConfigMap#optional
        '''
        result = self._values.get("optional")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PodMonitorSpecPodMetricsEndpointsOauth2ClientIdConfigMap(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpointsOauth2ClientIdSecret",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "name": "name", "optional": "optional"},
)
class PodMonitorSpecPodMetricsEndpointsOauth2ClientIdSecret:
    def __init__(
        self,
        *,
        key: builtins.str,
        name: typing.Optional[builtins.str] = None,
        optional: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param key: 
        :param name: 
        :param optional: 

        :schema: PodMonitorSpecPodMetricsEndpointsOauth2ClientIdSecret
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__75390537f55e1853616a5f608e2356ba18242be0f39436be16a8b5c42a6ba494)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument name", value=name, expected_type=type_hints["name"])
            check_type(argname="argument optional", value=optional, expected_type=type_hints["optional"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
        }
        if name is not None:
            self._values["name"] = name
        if optional is not None:
            self._values["optional"] = optional

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2ClientIdSecret#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2ClientIdSecret#name
        '''
        result = self._values.get("name")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def optional(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2ClientIdSecret#optional
        '''
        result = self._values.get("optional")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PodMonitorSpecPodMetricsEndpointsOauth2ClientIdSecret(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpointsOauth2ClientSecret",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "name": "name", "optional": "optional"},
)
class PodMonitorSpecPodMetricsEndpointsOauth2ClientSecret:
    def __init__(
        self,
        *,
        key: builtins.str,
        name: typing.Optional[builtins.str] = None,
        optional: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param key: 
        :param name: 
        :param optional: 

        :schema: PodMonitorSpecPodMetricsEndpointsOauth2ClientSecret
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__845fb0bc9456cf88d46da6c3fa73531e030544c1e8fa6dee990c603fe18eacc2)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument name", value=name, expected_type=type_hints["name"])
            check_type(argname="argument optional", value=optional, expected_type=type_hints["optional"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
        }
        if name is not None:
            self._values["name"] = name
        if optional is not None:
            self._values["optional"] = optional

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2ClientSecret#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2ClientSecret#name
        '''
        result = self._values.get("name")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def optional(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2ClientSecret#optional
        '''
        result = self._values.get("optional")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PodMonitorSpecPodMetricsEndpointsOauth2ClientSecret(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpointsOauth2ProxyConnectHeader",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "name": "name", "optional": "optional"},
)
class PodMonitorSpecPodMetricsEndpointsOauth2ProxyConnectHeader:
    def __init__(
        self,
        *,
        key: builtins.str,
        name: typing.Optional[builtins.str] = None,
        optional: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param key: 
        :param name: 
        :param optional: 

        :schema: PodMonitorSpecPodMetricsEndpointsOauth2ProxyConnectHeader
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__8af13ed4673c03e44fe34d5fdf5529f250573865ef2d8784578342fe6a1ff590)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument name", value=name, expected_type=type_hints["name"])
            check_type(argname="argument optional", value=optional, expected_type=type_hints["optional"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
        }
        if name is not None:
            self._values["name"] = name
        if optional is not None:
            self._values["optional"] = optional

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2ProxyConnectHeader#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2ProxyConnectHeader#name
        '''
        result = self._values.get("name")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def optional(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2ProxyConnectHeader#optional
        '''
        result = self._values.get("optional")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PodMonitorSpecPodMetricsEndpointsOauth2ProxyConnectHeader(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpointsOauth2TlsConfig",
    jsii_struct_bases=[],
    name_mapping={
        "ca": "ca",
        "cert": "cert",
        "insecure_skip_verify": "insecureSkipVerify",
        "key_secret": "keySecret",
        "max_version": "maxVersion",
        "min_version": "minVersion",
        "server_name": "serverName",
    },
)
class PodMonitorSpecPodMetricsEndpointsOauth2TlsConfig:
    def __init__(
        self,
        *,
        ca: typing.Optional[typing.Union["PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCa", typing.Dict[builtins.str, typing.Any]]] = None,
        cert: typing.Optional[typing.Union["PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCert", typing.Dict[builtins.str, typing.Any]]] = None,
        insecure_skip_verify: typing.Optional[builtins.bool] = None,
        key_secret: typing.Optional[typing.Union["PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigKeySecret", typing.Dict[builtins.str, typing.Any]]] = None,
        max_version: typing.Optional["PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigMaxVersion"] = None,
        min_version: typing.Optional["PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigMinVersion"] = None,
        server_name: typing.Optional[builtins.str] = None,
    ) -> None:
        '''
        :param ca: 
        :param cert: 
        :param insecure_skip_verify: 
        :param key_secret: 
        :param max_version: 
        :param min_version: 
        :param server_name: 

        :schema: PodMonitorSpecPodMetricsEndpointsOauth2TlsConfig
        '''
        if isinstance(ca, dict):
            ca = PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCa(**ca)
        if isinstance(cert, dict):
            cert = PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCert(**cert)
        if isinstance(key_secret, dict):
            key_secret = PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigKeySecret(**key_secret)
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__42f45a927cd6c05b80eecd9903f458f6189952bbc34481c1db97b5b891ad9d6d)
            check_type(argname="argument ca", value=ca, expected_type=type_hints["ca"])
            check_type(argname="argument cert", value=cert, expected_type=type_hints["cert"])
            check_type(argname="argument insecure_skip_verify", value=insecure_skip_verify, expected_type=type_hints["insecure_skip_verify"])
            check_type(argname="argument key_secret", value=key_secret, expected_type=type_hints["key_secret"])
            check_type(argname="argument max_version", value=max_version, expected_type=type_hints["max_version"])
            check_type(argname="argument min_version", value=min_version, expected_type=type_hints["min_version"])
            check_type(argname="argument server_name", value=server_name, expected_type=type_hints["server_name"])
        self._values: typing.Dict[builtins.str, typing.Any] = {}
        if ca is not None:
            self._values["ca"] = ca
        if cert is not None:
            self._values["cert"] = cert
        if insecure_skip_verify is not None:
            self._values["insecure_skip_verify"] = insecure_skip_verify
        if key_secret is not None:
            self._values["key_secret"] = key_secret
        if max_version is not None:
            self._values["max_version"] = max_version
        if min_version is not None:
            self._values["min_version"] = min_version
        if server_name is not None:
            self._values["server_name"] = server_name

    @builtins.property
    def ca(
        self,
    ) -> typing.Optional["PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCa"]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2TlsConfig#ca
        '''
        result = self._values.get("ca")
        return typing.cast(typing.Optional["PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCa"], result)

    @builtins.property
    def cert(
        self,
    ) -> typing.Optional["PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCert"]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2TlsConfig#cert
        '''
        result = self._values.get("cert")
        return typing.cast(typing.Optional["PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCert"], result)

    @builtins.property
    def insecure_skip_verify(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2TlsConfig#insecureSkipVerify
        '''
        result = self._values.get("insecure_skip_verify")
        return typing.cast(typing.Optional[builtins.bool], result)

    @builtins.property
    def key_secret(
        self,
    ) -> typing.Optional["PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigKeySecret"]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2TlsConfig#keySecret
        '''
        result = self._values.get("key_secret")
        return typing.cast(typing.Optional["PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigKeySecret"], result)

    @builtins.property
    def max_version(
        self,
    ) -> typing.Optional["PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigMaxVersion"]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2TlsConfig#maxVersion
        '''
        result = self._values.get("max_version")
        return typing.cast(typing.Optional["PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigMaxVersion"], result)

    @builtins.property
    def min_version(
        self,
    ) -> typing.Optional["PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigMinVersion"]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2TlsConfig#minVersion
        '''
        result = self._values.get("min_version")
        return typing.cast(typing.Optional["PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigMinVersion"], result)

    @builtins.property
    def server_name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2TlsConfig#serverName
        '''
        result = self._values.get("server_name")
        return typing.cast(typing.Optional[builtins.str], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PodMonitorSpecPodMetricsEndpointsOauth2TlsConfig(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCa",
    jsii_struct_bases=[],
    name_mapping={"config_map": "configMap", "secret": "secret"},
)
class PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCa:
    def __init__(
        self,
        *,
        config_map: typing.Optional[typing.Union["PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCaConfigMap", typing.Dict[builtins.str, typing.Any]]] = None,
        secret: typing.Optional[typing.Union["PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCaSecret", typing.Dict[builtins.str, typing.Any]]] = None,
    ) -> None:
        '''
        :param config_map: 
        :param secret: 

        :schema: PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCa
        '''
        if isinstance(config_map, dict):
            config_map = PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCaConfigMap(**config_map)
        if isinstance(secret, dict):
            secret = PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCaSecret(**secret)
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__c0640480251c9686aaaf57e24fb27d5277027d17ba87db99c8aadfd80b6bd962)
            check_type(argname="argument config_map", value=config_map, expected_type=type_hints["config_map"])
            check_type(argname="argument secret", value=secret, expected_type=type_hints["secret"])
        self._values: typing.Dict[builtins.str, typing.Any] = {}
        if config_map is not None:
            self._values["config_map"] = config_map
        if secret is not None:
            self._values["secret"] = secret

    @builtins.property
    def config_map(
        self,
    ) -> typing.Optional["PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCaConfigMap"]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCa#configMap
        '''
        result = self._values.get("config_map")
        return typing.cast(typing.Optional["PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCaConfigMap"], result)

    @builtins.property
    def secret(
        self,
    ) -> typing.Optional["PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCaSecret"]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCa#secret
        '''
        result = self._values.get("secret")
        return typing.cast(typing.Optional["PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCaSecret"], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCa(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCaConfigMap",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "name": "name", "optional": "optional"},
)
class PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCaConfigMap:
    def __init__(
        self,
        *,
        key: builtins.str,
        name: typing.Optional[builtins.str] = None,
        optional: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param key: 
        :param name: 
        :param optional: 

        :schema: PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCaConfigMap
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__e170820efb51f8a9e6fde163cfef4acdd1e792b94a1a657cda9cd549202e6d98)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument name", value=name, expected_type=type_hints["name"])
            check_type(argname="argument optional", value=optional, expected_type=type_hints["optional"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
        }
        if name is not None:
            self._values["name"] = name
        if optional is not None:
            self._values["optional"] = optional

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCaConfigMap#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCaConfigMap#name
        '''
        result = self._values.get("name")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def optional(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCaConfigMap#optional
        '''
        result = self._values.get("optional")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCaConfigMap(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCaSecret",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "name": "name", "optional": "optional"},
)
class PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCaSecret:
    def __init__(
        self,
        *,
        key: builtins.str,
        name: typing.Optional[builtins.str] = None,
        optional: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param key: 
        :param name: 
        :param optional: 

        :schema: PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCaSecret
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__28a7ca04df3796807af8c4c5e87bbaffaa636b0a60a5ecc317efb93aea394460)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument name", value=name, expected_type=type_hints["name"])
            check_type(argname="argument optional", value=optional, expected_type=type_hints["optional"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
        }
        if name is not None:
            self._values["name"] = name
        if optional is not None:
            self._values["optional"] = optional

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCaSecret#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCaSecret#name
        '''
        result = self._values.get("name")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def optional(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCaSecret#optional
        '''
        result = self._values.get("optional")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCaSecret(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCert",
    jsii_struct_bases=[],
    name_mapping={"config_map": "configMap", "secret": "secret"},
)
class PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCert:
    def __init__(
        self,
        *,
        config_map: typing.Optional[typing.Union["PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCertConfigMap", typing.Dict[builtins.str, typing.Any]]] = None,
        secret: typing.Optional[typing.Union["PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCertSecret", typing.Dict[builtins.str, typing.Any]]] = None,
    ) -> None:
        '''
        :param config_map: 
        :param secret: 

        :schema: PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCert
        '''
        if isinstance(config_map, dict):
            config_map = PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCertConfigMap(**config_map)
        if isinstance(secret, dict):
            secret = PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCertSecret(**secret)
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__37fd4bbec00b51706b60b789bfcc054b2920cc3027c82d94c38afaf565ab92b0)
            check_type(argname="argument config_map", value=config_map, expected_type=type_hints["config_map"])
            check_type(argname="argument secret", value=secret, expected_type=type_hints["secret"])
        self._values: typing.Dict[builtins.str, typing.Any] = {}
        if config_map is not None:
            self._values["config_map"] = config_map
        if secret is not None:
            self._values["secret"] = secret

    @builtins.property
    def config_map(
        self,
    ) -> typing.Optional["PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCertConfigMap"]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCert#configMap
        '''
        result = self._values.get("config_map")
        return typing.cast(typing.Optional["PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCertConfigMap"], result)

    @builtins.property
    def secret(
        self,
    ) -> typing.Optional["PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCertSecret"]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCert#secret
        '''
        result = self._values.get("secret")
        return typing.cast(typing.Optional["PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCertSecret"], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCert(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCertConfigMap",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "name": "name", "optional": "optional"},
)
class PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCertConfigMap:
    def __init__(
        self,
        *,
        key: builtins.str,
        name: typing.Optional[builtins.str] = None,
        optional: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param key: 
        :param name: 
        :param optional: 

        :schema: PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCertConfigMap
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__dffe632a5b8d8fca75a9ebdf7da329ce475ae55233b089fbf39b20d16fdc2a00)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument name", value=name, expected_type=type_hints["name"])
            check_type(argname="argument optional", value=optional, expected_type=type_hints["optional"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
        }
        if name is not None:
            self._values["name"] = name
        if optional is not None:
            self._values["optional"] = optional

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCertConfigMap#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCertConfigMap#name
        '''
        result = self._values.get("name")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def optional(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCertConfigMap#optional
        '''
        result = self._values.get("optional")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCertConfigMap(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCertSecret",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "name": "name", "optional": "optional"},
)
class PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCertSecret:
    def __init__(
        self,
        *,
        key: builtins.str,
        name: typing.Optional[builtins.str] = None,
        optional: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param key: 
        :param name: 
        :param optional: 

        :schema: PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCertSecret
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__afb309797ebe60ddf740d6243de27ddcfbf79eeb888ad3d01fc3dd45d4eb5353)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument name", value=name, expected_type=type_hints["name"])
            check_type(argname="argument optional", value=optional, expected_type=type_hints["optional"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
        }
        if name is not None:
            self._values["name"] = name
        if optional is not None:
            self._values["optional"] = optional

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCertSecret#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCertSecret#name
        '''
        result = self._values.get("name")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def optional(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCertSecret#optional
        '''
        result = self._values.get("optional")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCertSecret(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigKeySecret",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "name": "name", "optional": "optional"},
)
class PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigKeySecret:
    def __init__(
        self,
        *,
        key: builtins.str,
        name: typing.Optional[builtins.str] = None,
        optional: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param key: 
        :param name: 
        :param optional: 

        :schema: PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigKeySecret
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__d2d3bb50278a6a5aae1d9fd297bf4c080945e32bfb10c3011b900146dd16c914)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument name", value=name, expected_type=type_hints["name"])
            check_type(argname="argument optional", value=optional, expected_type=type_hints["optional"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
        }
        if name is not None:
            self._values["name"] = name
        if optional is not None:
            self._values["optional"] = optional

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigKeySecret#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigKeySecret#name
        '''
        result = self._values.get("name")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def optional(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigKeySecret#optional
        '''
        result = self._values.get("optional")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigKeySecret(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.enum(
    jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigMaxVersion"
)
class PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigMaxVersion(enum.Enum):
    '''
    :schema: PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigMaxVersion
    '''

    TLS10 = "TLS10"
    '''TLS10.'''
    TLS11 = "TLS11"
    '''TLS11.'''
    TLS12 = "TLS12"
    '''TLS12.'''
    TLS13 = "TLS13"
    '''TLS13.'''


@jsii.enum(
    jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigMinVersion"
)
class PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigMinVersion(enum.Enum):
    '''
    :schema: PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigMinVersion
    '''

    TLS10 = "TLS10"
    '''TLS10.'''
    TLS11 = "TLS11"
    '''TLS11.'''
    TLS12 = "TLS12"
    '''TLS12.'''
    TLS13 = "TLS13"
    '''TLS13.'''


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpointsProxyConnectHeader",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "name": "name", "optional": "optional"},
)
class PodMonitorSpecPodMetricsEndpointsProxyConnectHeader:
    def __init__(
        self,
        *,
        key: builtins.str,
        name: typing.Optional[builtins.str] = None,
        optional: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param key: 
        :param name: 
        :param optional: 

        :schema: PodMonitorSpecPodMetricsEndpointsProxyConnectHeader
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__467944ef4d470c658d7ad35c987025b05cfcd59efebf4d3a5026fc11b1b3a17a)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument name", value=name, expected_type=type_hints["name"])
            check_type(argname="argument optional", value=optional, expected_type=type_hints["optional"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
        }
        if name is not None:
            self._values["name"] = name
        if optional is not None:
            self._values["optional"] = optional

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsProxyConnectHeader#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsProxyConnectHeader#name
        '''
        result = self._values.get("name")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def optional(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsProxyConnectHeader#optional
        '''
        result = self._values.get("optional")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PodMonitorSpecPodMetricsEndpointsProxyConnectHeader(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpointsRelabelings",
    jsii_struct_bases=[],
    name_mapping={
        "action": "action",
        "modulus": "modulus",
        "regex": "regex",
        "replacement": "replacement",
        "separator": "separator",
        "source_labels": "sourceLabels",
        "target_label": "targetLabel",
    },
)
class PodMonitorSpecPodMetricsEndpointsRelabelings:
    def __init__(
        self,
        *,
        action: typing.Optional["PodMonitorSpecPodMetricsEndpointsRelabelingsAction"] = None,
        modulus: typing.Optional[jsii.Number] = None,
        regex: typing.Optional[builtins.str] = None,
        replacement: typing.Optional[builtins.str] = None,
        separator: typing.Optional[builtins.str] = None,
        source_labels: typing.Optional[typing.Sequence[builtins.str]] = None,
        target_label: typing.Optional[builtins.str] = None,
    ) -> None:
        '''
        :param action: 
        :param modulus: 
        :param regex: 
        :param replacement: 
        :param separator: 
        :param source_labels: 
        :param target_label: 

        :schema: PodMonitorSpecPodMetricsEndpointsRelabelings
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__56d9a4ee0d45464a0442734472d6d978277b854ed798573def6397bf849beace)
            check_type(argname="argument action", value=action, expected_type=type_hints["action"])
            check_type(argname="argument modulus", value=modulus, expected_type=type_hints["modulus"])
            check_type(argname="argument regex", value=regex, expected_type=type_hints["regex"])
            check_type(argname="argument replacement", value=replacement, expected_type=type_hints["replacement"])
            check_type(argname="argument separator", value=separator, expected_type=type_hints["separator"])
            check_type(argname="argument source_labels", value=source_labels, expected_type=type_hints["source_labels"])
            check_type(argname="argument target_label", value=target_label, expected_type=type_hints["target_label"])
        self._values: typing.Dict[builtins.str, typing.Any] = {}
        if action is not None:
            self._values["action"] = action
        if modulus is not None:
            self._values["modulus"] = modulus
        if regex is not None:
            self._values["regex"] = regex
        if replacement is not None:
            self._values["replacement"] = replacement
        if separator is not None:
            self._values["separator"] = separator
        if source_labels is not None:
            self._values["source_labels"] = source_labels
        if target_label is not None:
            self._values["target_label"] = target_label

    @builtins.property
    def action(
        self,
    ) -> typing.Optional["PodMonitorSpecPodMetricsEndpointsRelabelingsAction"]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsRelabelings#action
        '''
        result = self._values.get("action")
        return typing.cast(typing.Optional["PodMonitorSpecPodMetricsEndpointsRelabelingsAction"], result)

    @builtins.property
    def modulus(self) -> typing.Optional[jsii.Number]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsRelabelings#modulus
        '''
        result = self._values.get("modulus")
        return typing.cast(typing.Optional[jsii.Number], result)

    @builtins.property
    def regex(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsRelabelings#regex
        '''
        result = self._values.get("regex")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def replacement(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsRelabelings#replacement
        '''
        result = self._values.get("replacement")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def separator(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsRelabelings#separator
        '''
        result = self._values.get("separator")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def source_labels(self) -> typing.Optional[typing.List[builtins.str]]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsRelabelings#sourceLabels
        '''
        result = self._values.get("source_labels")
        return typing.cast(typing.Optional[typing.List[builtins.str]], result)

    @builtins.property
    def target_label(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsRelabelings#targetLabel
        '''
        result = self._values.get("target_label")
        return typing.cast(typing.Optional[builtins.str], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PodMonitorSpecPodMetricsEndpointsRelabelings(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.enum(
    jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpointsRelabelingsAction"
)
class PodMonitorSpecPodMetricsEndpointsRelabelingsAction(enum.Enum):
    '''
    :schema: PodMonitorSpecPodMetricsEndpointsRelabelingsAction
    '''

    REPLACE = "REPLACE"
    '''replace.'''
    KEEP = "KEEP"
    '''keep.'''
    DROP = "DROP"
    '''drop.'''
    HASHMOD = "HASHMOD"
    '''hashmod.'''
    LABELMAP = "LABELMAP"
    '''labelmap.'''
    LABELDROP = "LABELDROP"
    '''labeldrop.'''
    LABELKEEP = "LABELKEEP"
    '''labelkeep.'''
    LOWERCASE = "LOWERCASE"
    '''lowercase.'''
    UPPERCASE = "UPPERCASE"
    '''uppercase.'''
    KEEPEQUAL = "KEEPEQUAL"
    '''keepequal.'''
    DROPEQUAL = "DROPEQUAL"
    '''dropequal.'''


@jsii.enum(jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpointsScheme")
class PodMonitorSpecPodMetricsEndpointsScheme(enum.Enum):
    '''
    :schema: PodMonitorSpecPodMetricsEndpointsScheme
    '''

    HTTP = "HTTP"
    '''http.'''
    HTTPS = "HTTPS"
    '''https.'''


class PodMonitorSpecPodMetricsEndpointsTargetPort(
    metaclass=jsii.JSIIMeta,
    jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpointsTargetPort",
):
    '''
    :schema: PodMonitorSpecPodMetricsEndpointsTargetPort
    '''

    @jsii.member(jsii_name="fromNumber")
    @builtins.classmethod
    def from_number(
        cls,
        value: jsii.Number,
    ) -> "PodMonitorSpecPodMetricsEndpointsTargetPort":
        '''
        :param value: -
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__d1a59e5924c18a421e1d23fce338b7be139e7d21e570263f8225a73987f54aea)
            check_type(argname="argument value", value=value, expected_type=type_hints["value"])
        return typing.cast("PodMonitorSpecPodMetricsEndpointsTargetPort", jsii.sinvoke(cls, "fromNumber", [value]))

    @jsii.member(jsii_name="fromString")
    @builtins.classmethod
    def from_string(
        cls,
        value: builtins.str,
    ) -> "PodMonitorSpecPodMetricsEndpointsTargetPort":
        '''
        :param value: -
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__821b827ed727d856d427ac44eacbaba07ce8be339005aef59e8ead31ed546614)
            check_type(argname="argument value", value=value, expected_type=type_hints["value"])
        return typing.cast("PodMonitorSpecPodMetricsEndpointsTargetPort", jsii.sinvoke(cls, "fromString", [value]))

    @builtins.property
    @jsii.member(jsii_name="value")
    def value(self) -> typing.Union[builtins.str, jsii.Number]:
        return typing.cast(typing.Union[builtins.str, jsii.Number], jsii.get(self, "value"))


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpointsTlsConfig",
    jsii_struct_bases=[],
    name_mapping={
        "ca": "ca",
        "cert": "cert",
        "insecure_skip_verify": "insecureSkipVerify",
        "key_secret": "keySecret",
        "max_version": "maxVersion",
        "min_version": "minVersion",
        "server_name": "serverName",
    },
)
class PodMonitorSpecPodMetricsEndpointsTlsConfig:
    def __init__(
        self,
        *,
        ca: typing.Optional[typing.Union["PodMonitorSpecPodMetricsEndpointsTlsConfigCa", typing.Dict[builtins.str, typing.Any]]] = None,
        cert: typing.Optional[typing.Union["PodMonitorSpecPodMetricsEndpointsTlsConfigCert", typing.Dict[builtins.str, typing.Any]]] = None,
        insecure_skip_verify: typing.Optional[builtins.bool] = None,
        key_secret: typing.Optional[typing.Union["PodMonitorSpecPodMetricsEndpointsTlsConfigKeySecret", typing.Dict[builtins.str, typing.Any]]] = None,
        max_version: typing.Optional["PodMonitorSpecPodMetricsEndpointsTlsConfigMaxVersion"] = None,
        min_version: typing.Optional["PodMonitorSpecPodMetricsEndpointsTlsConfigMinVersion"] = None,
        server_name: typing.Optional[builtins.str] = None,
    ) -> None:
        '''
        :param ca: 
        :param cert: 
        :param insecure_skip_verify: 
        :param key_secret: 
        :param max_version: 
        :param min_version: 
        :param server_name: 

        :schema: PodMonitorSpecPodMetricsEndpointsTlsConfig
        '''
        if isinstance(ca, dict):
            ca = PodMonitorSpecPodMetricsEndpointsTlsConfigCa(**ca)
        if isinstance(cert, dict):
            cert = PodMonitorSpecPodMetricsEndpointsTlsConfigCert(**cert)
        if isinstance(key_secret, dict):
            key_secret = PodMonitorSpecPodMetricsEndpointsTlsConfigKeySecret(**key_secret)
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__c234aac7608f795da982e701f01fe96fa6fd624796fd52dfe8e71630c8dcba31)
            check_type(argname="argument ca", value=ca, expected_type=type_hints["ca"])
            check_type(argname="argument cert", value=cert, expected_type=type_hints["cert"])
            check_type(argname="argument insecure_skip_verify", value=insecure_skip_verify, expected_type=type_hints["insecure_skip_verify"])
            check_type(argname="argument key_secret", value=key_secret, expected_type=type_hints["key_secret"])
            check_type(argname="argument max_version", value=max_version, expected_type=type_hints["max_version"])
            check_type(argname="argument min_version", value=min_version, expected_type=type_hints["min_version"])
            check_type(argname="argument server_name", value=server_name, expected_type=type_hints["server_name"])
        self._values: typing.Dict[builtins.str, typing.Any] = {}
        if ca is not None:
            self._values["ca"] = ca
        if cert is not None:
            self._values["cert"] = cert
        if insecure_skip_verify is not None:
            self._values["insecure_skip_verify"] = insecure_skip_verify
        if key_secret is not None:
            self._values["key_secret"] = key_secret
        if max_version is not None:
            self._values["max_version"] = max_version
        if min_version is not None:
            self._values["min_version"] = min_version
        if server_name is not None:
            self._values["server_name"] = server_name

    @builtins.property
    def ca(self) -> typing.Optional["PodMonitorSpecPodMetricsEndpointsTlsConfigCa"]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsTlsConfig#ca
        '''
        result = self._values.get("ca")
        return typing.cast(typing.Optional["PodMonitorSpecPodMetricsEndpointsTlsConfigCa"], result)

    @builtins.property
    def cert(self) -> typing.Optional["PodMonitorSpecPodMetricsEndpointsTlsConfigCert"]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsTlsConfig#cert
        '''
        result = self._values.get("cert")
        return typing.cast(typing.Optional["PodMonitorSpecPodMetricsEndpointsTlsConfigCert"], result)

    @builtins.property
    def insecure_skip_verify(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsTlsConfig#insecureSkipVerify
        '''
        result = self._values.get("insecure_skip_verify")
        return typing.cast(typing.Optional[builtins.bool], result)

    @builtins.property
    def key_secret(
        self,
    ) -> typing.Optional["PodMonitorSpecPodMetricsEndpointsTlsConfigKeySecret"]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsTlsConfig#keySecret
        '''
        result = self._values.get("key_secret")
        return typing.cast(typing.Optional["PodMonitorSpecPodMetricsEndpointsTlsConfigKeySecret"], result)

    @builtins.property
    def max_version(
        self,
    ) -> typing.Optional["PodMonitorSpecPodMetricsEndpointsTlsConfigMaxVersion"]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsTlsConfig#maxVersion
        '''
        result = self._values.get("max_version")
        return typing.cast(typing.Optional["PodMonitorSpecPodMetricsEndpointsTlsConfigMaxVersion"], result)

    @builtins.property
    def min_version(
        self,
    ) -> typing.Optional["PodMonitorSpecPodMetricsEndpointsTlsConfigMinVersion"]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsTlsConfig#minVersion
        '''
        result = self._values.get("min_version")
        return typing.cast(typing.Optional["PodMonitorSpecPodMetricsEndpointsTlsConfigMinVersion"], result)

    @builtins.property
    def server_name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsTlsConfig#serverName
        '''
        result = self._values.get("server_name")
        return typing.cast(typing.Optional[builtins.str], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PodMonitorSpecPodMetricsEndpointsTlsConfig(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpointsTlsConfigCa",
    jsii_struct_bases=[],
    name_mapping={"config_map": "configMap", "secret": "secret"},
)
class PodMonitorSpecPodMetricsEndpointsTlsConfigCa:
    def __init__(
        self,
        *,
        config_map: typing.Optional[typing.Union["PodMonitorSpecPodMetricsEndpointsTlsConfigCaConfigMap", typing.Dict[builtins.str, typing.Any]]] = None,
        secret: typing.Optional[typing.Union["PodMonitorSpecPodMetricsEndpointsTlsConfigCaSecret", typing.Dict[builtins.str, typing.Any]]] = None,
    ) -> None:
        '''
        :param config_map: 
        :param secret: 

        :schema: PodMonitorSpecPodMetricsEndpointsTlsConfigCa
        '''
        if isinstance(config_map, dict):
            config_map = PodMonitorSpecPodMetricsEndpointsTlsConfigCaConfigMap(**config_map)
        if isinstance(secret, dict):
            secret = PodMonitorSpecPodMetricsEndpointsTlsConfigCaSecret(**secret)
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__03938493060822b9ba174767d75d5df101643e87d7b3a5439ac9110f9f494b74)
            check_type(argname="argument config_map", value=config_map, expected_type=type_hints["config_map"])
            check_type(argname="argument secret", value=secret, expected_type=type_hints["secret"])
        self._values: typing.Dict[builtins.str, typing.Any] = {}
        if config_map is not None:
            self._values["config_map"] = config_map
        if secret is not None:
            self._values["secret"] = secret

    @builtins.property
    def config_map(
        self,
    ) -> typing.Optional["PodMonitorSpecPodMetricsEndpointsTlsConfigCaConfigMap"]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsTlsConfigCa#configMap
        '''
        result = self._values.get("config_map")
        return typing.cast(typing.Optional["PodMonitorSpecPodMetricsEndpointsTlsConfigCaConfigMap"], result)

    @builtins.property
    def secret(
        self,
    ) -> typing.Optional["PodMonitorSpecPodMetricsEndpointsTlsConfigCaSecret"]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsTlsConfigCa#secret
        '''
        result = self._values.get("secret")
        return typing.cast(typing.Optional["PodMonitorSpecPodMetricsEndpointsTlsConfigCaSecret"], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PodMonitorSpecPodMetricsEndpointsTlsConfigCa(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpointsTlsConfigCaConfigMap",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "name": "name", "optional": "optional"},
)
class PodMonitorSpecPodMetricsEndpointsTlsConfigCaConfigMap:
    def __init__(
        self,
        *,
        key: builtins.str,
        name: typing.Optional[builtins.str] = None,
        optional: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param key: 
        :param name: 
        :param optional: 

        :schema: PodMonitorSpecPodMetricsEndpointsTlsConfigCaConfigMap
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__0ce702022aaf3b6d024489105d1b9437d6127bd3e09fed09021308770cbafd4e)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument name", value=name, expected_type=type_hints["name"])
            check_type(argname="argument optional", value=optional, expected_type=type_hints["optional"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
        }
        if name is not None:
            self._values["name"] = name
        if optional is not None:
            self._values["optional"] = optional

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsTlsConfigCaConfigMap#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsTlsConfigCaConfigMap#name
        '''
        result = self._values.get("name")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def optional(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsTlsConfigCaConfigMap#optional
        '''
        result = self._values.get("optional")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PodMonitorSpecPodMetricsEndpointsTlsConfigCaConfigMap(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpointsTlsConfigCaSecret",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "name": "name", "optional": "optional"},
)
class PodMonitorSpecPodMetricsEndpointsTlsConfigCaSecret:
    def __init__(
        self,
        *,
        key: builtins.str,
        name: typing.Optional[builtins.str] = None,
        optional: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param key: 
        :param name: 
        :param optional: 

        :schema: PodMonitorSpecPodMetricsEndpointsTlsConfigCaSecret
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__c275c9c904aed455ef59e7656e0f2de4e2646d5581f314723e4b397f4e03882b)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument name", value=name, expected_type=type_hints["name"])
            check_type(argname="argument optional", value=optional, expected_type=type_hints["optional"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
        }
        if name is not None:
            self._values["name"] = name
        if optional is not None:
            self._values["optional"] = optional

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsTlsConfigCaSecret#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsTlsConfigCaSecret#name
        '''
        result = self._values.get("name")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def optional(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsTlsConfigCaSecret#optional
        '''
        result = self._values.get("optional")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PodMonitorSpecPodMetricsEndpointsTlsConfigCaSecret(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpointsTlsConfigCert",
    jsii_struct_bases=[],
    name_mapping={"config_map": "configMap", "secret": "secret"},
)
class PodMonitorSpecPodMetricsEndpointsTlsConfigCert:
    def __init__(
        self,
        *,
        config_map: typing.Optional[typing.Union["PodMonitorSpecPodMetricsEndpointsTlsConfigCertConfigMap", typing.Dict[builtins.str, typing.Any]]] = None,
        secret: typing.Optional[typing.Union["PodMonitorSpecPodMetricsEndpointsTlsConfigCertSecret", typing.Dict[builtins.str, typing.Any]]] = None,
    ) -> None:
        '''
        :param config_map: 
        :param secret: 

        :schema: PodMonitorSpecPodMetricsEndpointsTlsConfigCert
        '''
        if isinstance(config_map, dict):
            config_map = PodMonitorSpecPodMetricsEndpointsTlsConfigCertConfigMap(**config_map)
        if isinstance(secret, dict):
            secret = PodMonitorSpecPodMetricsEndpointsTlsConfigCertSecret(**secret)
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__bc507a8e77eaf0474f8f1794aa0ed49ce1f9801773381ddd5a9c2494dab06d44)
            check_type(argname="argument config_map", value=config_map, expected_type=type_hints["config_map"])
            check_type(argname="argument secret", value=secret, expected_type=type_hints["secret"])
        self._values: typing.Dict[builtins.str, typing.Any] = {}
        if config_map is not None:
            self._values["config_map"] = config_map
        if secret is not None:
            self._values["secret"] = secret

    @builtins.property
    def config_map(
        self,
    ) -> typing.Optional["PodMonitorSpecPodMetricsEndpointsTlsConfigCertConfigMap"]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsTlsConfigCert#configMap
        '''
        result = self._values.get("config_map")
        return typing.cast(typing.Optional["PodMonitorSpecPodMetricsEndpointsTlsConfigCertConfigMap"], result)

    @builtins.property
    def secret(
        self,
    ) -> typing.Optional["PodMonitorSpecPodMetricsEndpointsTlsConfigCertSecret"]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsTlsConfigCert#secret
        '''
        result = self._values.get("secret")
        return typing.cast(typing.Optional["PodMonitorSpecPodMetricsEndpointsTlsConfigCertSecret"], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PodMonitorSpecPodMetricsEndpointsTlsConfigCert(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpointsTlsConfigCertConfigMap",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "name": "name", "optional": "optional"},
)
class PodMonitorSpecPodMetricsEndpointsTlsConfigCertConfigMap:
    def __init__(
        self,
        *,
        key: builtins.str,
        name: typing.Optional[builtins.str] = None,
        optional: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param key: 
        :param name: 
        :param optional: 

        :schema: PodMonitorSpecPodMetricsEndpointsTlsConfigCertConfigMap
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__a1df02457b753ec51015d32e1a861cc8d0a5e52d75c90db2ff897b0dd4e943db)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument name", value=name, expected_type=type_hints["name"])
            check_type(argname="argument optional", value=optional, expected_type=type_hints["optional"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
        }
        if name is not None:
            self._values["name"] = name
        if optional is not None:
            self._values["optional"] = optional

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsTlsConfigCertConfigMap#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsTlsConfigCertConfigMap#name
        '''
        result = self._values.get("name")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def optional(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsTlsConfigCertConfigMap#optional
        '''
        result = self._values.get("optional")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PodMonitorSpecPodMetricsEndpointsTlsConfigCertConfigMap(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpointsTlsConfigCertSecret",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "name": "name", "optional": "optional"},
)
class PodMonitorSpecPodMetricsEndpointsTlsConfigCertSecret:
    def __init__(
        self,
        *,
        key: builtins.str,
        name: typing.Optional[builtins.str] = None,
        optional: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param key: 
        :param name: 
        :param optional: 

        :schema: PodMonitorSpecPodMetricsEndpointsTlsConfigCertSecret
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__ce57b1e29f8b36b9c9aedd837674e716b4d36adab6626dc3c50d67176c27253e)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument name", value=name, expected_type=type_hints["name"])
            check_type(argname="argument optional", value=optional, expected_type=type_hints["optional"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
        }
        if name is not None:
            self._values["name"] = name
        if optional is not None:
            self._values["optional"] = optional

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsTlsConfigCertSecret#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsTlsConfigCertSecret#name
        '''
        result = self._values.get("name")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def optional(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsTlsConfigCertSecret#optional
        '''
        result = self._values.get("optional")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PodMonitorSpecPodMetricsEndpointsTlsConfigCertSecret(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpointsTlsConfigKeySecret",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "name": "name", "optional": "optional"},
)
class PodMonitorSpecPodMetricsEndpointsTlsConfigKeySecret:
    def __init__(
        self,
        *,
        key: builtins.str,
        name: typing.Optional[builtins.str] = None,
        optional: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param key: 
        :param name: 
        :param optional: 

        :schema: PodMonitorSpecPodMetricsEndpointsTlsConfigKeySecret
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__11879abdb955ac286dfb2039516b0f0f7c92ddbfb7b6d438c736c679acdf908c)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument name", value=name, expected_type=type_hints["name"])
            check_type(argname="argument optional", value=optional, expected_type=type_hints["optional"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
        }
        if name is not None:
            self._values["name"] = name
        if optional is not None:
            self._values["optional"] = optional

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsTlsConfigKeySecret#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsTlsConfigKeySecret#name
        '''
        result = self._values.get("name")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def optional(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: PodMonitorSpecPodMetricsEndpointsTlsConfigKeySecret#optional
        '''
        result = self._values.get("optional")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PodMonitorSpecPodMetricsEndpointsTlsConfigKeySecret(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.enum(
    jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpointsTlsConfigMaxVersion"
)
class PodMonitorSpecPodMetricsEndpointsTlsConfigMaxVersion(enum.Enum):
    '''
    :schema: PodMonitorSpecPodMetricsEndpointsTlsConfigMaxVersion
    '''

    TLS10 = "TLS10"
    '''TLS10.'''
    TLS11 = "TLS11"
    '''TLS11.'''
    TLS12 = "TLS12"
    '''TLS12.'''
    TLS13 = "TLS13"
    '''TLS13.'''


@jsii.enum(
    jsii_type="comcoreosmonitoring.PodMonitorSpecPodMetricsEndpointsTlsConfigMinVersion"
)
class PodMonitorSpecPodMetricsEndpointsTlsConfigMinVersion(enum.Enum):
    '''
    :schema: PodMonitorSpecPodMetricsEndpointsTlsConfigMinVersion
    '''

    TLS10 = "TLS10"
    '''TLS10.'''
    TLS11 = "TLS11"
    '''TLS11.'''
    TLS12 = "TLS12"
    '''TLS12.'''
    TLS13 = "TLS13"
    '''TLS13.'''


@jsii.enum(jsii_type="comcoreosmonitoring.PodMonitorSpecScrapeProtocols")
class PodMonitorSpecScrapeProtocols(enum.Enum):
    '''
    :schema: PodMonitorSpecScrapeProtocols
    '''

    PROMETHEUS_PROTO = "PROMETHEUS_PROTO"
    '''PrometheusProto.'''
    OPEN_METRICS_TEXT0_0_1 = "OPEN_METRICS_TEXT0_0_1"
    '''OpenMetricsText0.0.1.'''
    OPEN_METRICS_TEXT1_0_0 = "OPEN_METRICS_TEXT1_0_0"
    '''OpenMetricsText1.0.0.'''
    PROMETHEUS_TEXT0_0_4 = "PROMETHEUS_TEXT0_0_4"
    '''PrometheusText0.0.4.'''
    PROMETHEUS_TEXT1_0_0 = "PROMETHEUS_TEXT1_0_0"
    '''PrometheusText1.0.0.'''


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PodMonitorSpecSelector",
    jsii_struct_bases=[],
    name_mapping={
        "match_expressions": "matchExpressions",
        "match_labels": "matchLabels",
    },
)
class PodMonitorSpecSelector:
    def __init__(
        self,
        *,
        match_expressions: typing.Optional[typing.Sequence[typing.Union["PodMonitorSpecSelectorMatchExpressions", typing.Dict[builtins.str, typing.Any]]]] = None,
        match_labels: typing.Optional[typing.Mapping[builtins.str, builtins.str]] = None,
    ) -> None:
        '''
        :param match_expressions: 
        :param match_labels: 

        :schema: PodMonitorSpecSelector
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__0807ae16c2fa6e21f535839f0ad802f79dfd66a804e502f5dba590cd2f109de9)
            check_type(argname="argument match_expressions", value=match_expressions, expected_type=type_hints["match_expressions"])
            check_type(argname="argument match_labels", value=match_labels, expected_type=type_hints["match_labels"])
        self._values: typing.Dict[builtins.str, typing.Any] = {}
        if match_expressions is not None:
            self._values["match_expressions"] = match_expressions
        if match_labels is not None:
            self._values["match_labels"] = match_labels

    @builtins.property
    def match_expressions(
        self,
    ) -> typing.Optional[typing.List["PodMonitorSpecSelectorMatchExpressions"]]:
        '''
        :schema: PodMonitorSpecSelector#matchExpressions
        '''
        result = self._values.get("match_expressions")
        return typing.cast(typing.Optional[typing.List["PodMonitorSpecSelectorMatchExpressions"]], result)

    @builtins.property
    def match_labels(
        self,
    ) -> typing.Optional[typing.Mapping[builtins.str, builtins.str]]:
        '''
        :schema: PodMonitorSpecSelector#matchLabels
        '''
        result = self._values.get("match_labels")
        return typing.cast(typing.Optional[typing.Mapping[builtins.str, builtins.str]], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PodMonitorSpecSelector(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PodMonitorSpecSelectorMatchExpressions",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "operator": "operator", "values": "values"},
)
class PodMonitorSpecSelectorMatchExpressions:
    def __init__(
        self,
        *,
        key: builtins.str,
        operator: builtins.str,
        values: typing.Optional[typing.Sequence[builtins.str]] = None,
    ) -> None:
        '''
        :param key: 
        :param operator: 
        :param values: 

        :schema: PodMonitorSpecSelectorMatchExpressions
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__ce9562a0e60a90646490d8b92342f57bf5481e21a65c0af83c6693e61840cf13)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument operator", value=operator, expected_type=type_hints["operator"])
            check_type(argname="argument values", value=values, expected_type=type_hints["values"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
            "operator": operator,
        }
        if values is not None:
            self._values["values"] = values

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: PodMonitorSpecSelectorMatchExpressions#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def operator(self) -> builtins.str:
        '''
        :schema: PodMonitorSpecSelectorMatchExpressions#operator
        '''
        result = self._values.get("operator")
        assert result is not None, "Required property 'operator' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def values(self) -> typing.Optional[typing.List[builtins.str]]:
        '''
        :schema: PodMonitorSpecSelectorMatchExpressions#values
        '''
        result = self._values.get("values")
        return typing.cast(typing.Optional[typing.List[builtins.str]], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PodMonitorSpecSelectorMatchExpressions(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.enum(jsii_type="comcoreosmonitoring.PodMonitorSpecSelectorMechanism")
class PodMonitorSpecSelectorMechanism(enum.Enum):
    '''
    :schema: PodMonitorSpecSelectorMechanism
    '''

    RELABEL_CONFIG = "RELABEL_CONFIG"
    '''RelabelConfig.'''
    ROLE_SELECTOR = "ROLE_SELECTOR"
    '''RoleSelector.'''


class PrometheusRule(
    _cdk8s_d3d9af27.ApiObject,
    metaclass=jsii.JSIIMeta,
    jsii_type="comcoreosmonitoring.PrometheusRule",
):
    '''
    :schema: PrometheusRule
    '''

    def __init__(
        self,
        scope: "_constructs_77d1e7e8.Construct",
        id: builtins.str,
        *,
        spec: typing.Union["PrometheusRuleSpec", typing.Dict[builtins.str, typing.Any]],
        metadata: typing.Optional[typing.Union["_cdk8s_d3d9af27.ApiObjectMetadata", typing.Dict[builtins.str, typing.Any]]] = None,
    ) -> None:
        '''Defines a "PrometheusRule" API object.

        :param scope: the scope in which to define this object.
        :param id: a scope-local name for the object.
        :param spec: 
        :param metadata: 
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__ec6724b05d6be8a069ac535d8d8d4461a23782e0a344fbd36d14e78cee59a003)
            check_type(argname="argument scope", value=scope, expected_type=type_hints["scope"])
            check_type(argname="argument id", value=id, expected_type=type_hints["id"])
        props = PrometheusRuleProps(spec=spec, metadata=metadata)

        jsii.create(self.__class__, self, [scope, id, props])

    @jsii.member(jsii_name="manifest")
    @builtins.classmethod
    def manifest(
        cls,
        *,
        spec: typing.Union["PrometheusRuleSpec", typing.Dict[builtins.str, typing.Any]],
        metadata: typing.Optional[typing.Union["_cdk8s_d3d9af27.ApiObjectMetadata", typing.Dict[builtins.str, typing.Any]]] = None,
    ) -> typing.Any:
        '''Renders a Kubernetes manifest for "PrometheusRule".

        This can be used to inline resource manifests inside other objects (e.g. as templates).

        :param spec: 
        :param metadata: 
        '''
        props = PrometheusRuleProps(spec=spec, metadata=metadata)

        return typing.cast(typing.Any, jsii.sinvoke(cls, "manifest", [props]))

    @jsii.member(jsii_name="toJson")
    def to_json(self) -> typing.Any:
        '''Renders the object to Kubernetes JSON.'''
        return typing.cast(typing.Any, jsii.invoke(self, "toJson", []))

    @jsii.python.classproperty
    @jsii.member(jsii_name="GVK")
    def GVK(cls) -> "_cdk8s_d3d9af27.GroupVersionKind":
        '''Returns the apiVersion and kind for "PrometheusRule".'''
        return typing.cast("_cdk8s_d3d9af27.GroupVersionKind", jsii.sget(cls, "GVK"))


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PrometheusRuleProps",
    jsii_struct_bases=[],
    name_mapping={"spec": "spec", "metadata": "metadata"},
)
class PrometheusRuleProps:
    def __init__(
        self,
        *,
        spec: typing.Union["PrometheusRuleSpec", typing.Dict[builtins.str, typing.Any]],
        metadata: typing.Optional[typing.Union["_cdk8s_d3d9af27.ApiObjectMetadata", typing.Dict[builtins.str, typing.Any]]] = None,
    ) -> None:
        '''
        :param spec: 
        :param metadata: 

        :schema: PrometheusRule
        '''
        if isinstance(spec, dict):
            spec = PrometheusRuleSpec(**spec)
        if isinstance(metadata, dict):
            metadata = _cdk8s_d3d9af27.ApiObjectMetadata(**metadata)
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__e21b7008853c9699b14d4efcceafa6ff9c975095432e2544845140d3312103bd)
            check_type(argname="argument spec", value=spec, expected_type=type_hints["spec"])
            check_type(argname="argument metadata", value=metadata, expected_type=type_hints["metadata"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "spec": spec,
        }
        if metadata is not None:
            self._values["metadata"] = metadata

    @builtins.property
    def spec(self) -> "PrometheusRuleSpec":
        '''
        :schema: PrometheusRule#spec
        '''
        result = self._values.get("spec")
        assert result is not None, "Required property 'spec' is missing"
        return typing.cast("PrometheusRuleSpec", result)

    @builtins.property
    def metadata(self) -> typing.Optional["_cdk8s_d3d9af27.ApiObjectMetadata"]:
        '''
        :schema: PrometheusRule#metadata
        '''
        result = self._values.get("metadata")
        return typing.cast(typing.Optional["_cdk8s_d3d9af27.ApiObjectMetadata"], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PrometheusRuleProps(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PrometheusRuleSpec",
    jsii_struct_bases=[],
    name_mapping={"groups": "groups"},
)
class PrometheusRuleSpec:
    def __init__(
        self,
        *,
        groups: typing.Optional[typing.Sequence[typing.Union["PrometheusRuleSpecGroups", typing.Dict[builtins.str, typing.Any]]]] = None,
    ) -> None:
        '''
        :param groups: 

        :schema: PrometheusRuleSpec
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__b7d731a17a6145319669c5ad04bbd6037ce4798b1fc1890c11154acc9d5785cc)
            check_type(argname="argument groups", value=groups, expected_type=type_hints["groups"])
        self._values: typing.Dict[builtins.str, typing.Any] = {}
        if groups is not None:
            self._values["groups"] = groups

    @builtins.property
    def groups(self) -> typing.Optional[typing.List["PrometheusRuleSpecGroups"]]:
        '''
        :schema: PrometheusRuleSpec#groups
        '''
        result = self._values.get("groups")
        return typing.cast(typing.Optional[typing.List["PrometheusRuleSpecGroups"]], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PrometheusRuleSpec(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PrometheusRuleSpecGroups",
    jsii_struct_bases=[],
    name_mapping={
        "name": "name",
        "interval": "interval",
        "labels": "labels",
        "limit": "limit",
        "partial_response_strategy": "partialResponseStrategy",
        "query_offset": "queryOffset",
        "rules": "rules",
    },
)
class PrometheusRuleSpecGroups:
    def __init__(
        self,
        *,
        name: builtins.str,
        interval: typing.Optional[builtins.str] = None,
        labels: typing.Optional[typing.Mapping[builtins.str, builtins.str]] = None,
        limit: typing.Optional[jsii.Number] = None,
        partial_response_strategy: typing.Optional[builtins.str] = None,
        query_offset: typing.Optional[builtins.str] = None,
        rules: typing.Optional[typing.Sequence[typing.Union["PrometheusRuleSpecGroupsRules", typing.Dict[builtins.str, typing.Any]]]] = None,
    ) -> None:
        '''
        :param name: 
        :param interval: 
        :param labels: 
        :param limit: 
        :param partial_response_strategy: 
        :param query_offset: 
        :param rules: 

        :schema: PrometheusRuleSpecGroups
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__98e68b7aa3a9e2ab89ed463a5d6f8881ee6f7e42ab4533bfc91fcfee1f79e104)
            check_type(argname="argument name", value=name, expected_type=type_hints["name"])
            check_type(argname="argument interval", value=interval, expected_type=type_hints["interval"])
            check_type(argname="argument labels", value=labels, expected_type=type_hints["labels"])
            check_type(argname="argument limit", value=limit, expected_type=type_hints["limit"])
            check_type(argname="argument partial_response_strategy", value=partial_response_strategy, expected_type=type_hints["partial_response_strategy"])
            check_type(argname="argument query_offset", value=query_offset, expected_type=type_hints["query_offset"])
            check_type(argname="argument rules", value=rules, expected_type=type_hints["rules"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "name": name,
        }
        if interval is not None:
            self._values["interval"] = interval
        if labels is not None:
            self._values["labels"] = labels
        if limit is not None:
            self._values["limit"] = limit
        if partial_response_strategy is not None:
            self._values["partial_response_strategy"] = partial_response_strategy
        if query_offset is not None:
            self._values["query_offset"] = query_offset
        if rules is not None:
            self._values["rules"] = rules

    @builtins.property
    def name(self) -> builtins.str:
        '''
        :schema: PrometheusRuleSpecGroups#name
        '''
        result = self._values.get("name")
        assert result is not None, "Required property 'name' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def interval(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PrometheusRuleSpecGroups#interval
        '''
        result = self._values.get("interval")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def labels(self) -> typing.Optional[typing.Mapping[builtins.str, builtins.str]]:
        '''
        :schema: PrometheusRuleSpecGroups#labels
        '''
        result = self._values.get("labels")
        return typing.cast(typing.Optional[typing.Mapping[builtins.str, builtins.str]], result)

    @builtins.property
    def limit(self) -> typing.Optional[jsii.Number]:
        '''
        :schema: PrometheusRuleSpecGroups#limit
        '''
        result = self._values.get("limit")
        return typing.cast(typing.Optional[jsii.Number], result)

    @builtins.property
    def partial_response_strategy(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PrometheusRuleSpecGroups#partial_response_strategy
        '''
        result = self._values.get("partial_response_strategy")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def query_offset(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PrometheusRuleSpecGroups#query_offset
        '''
        result = self._values.get("query_offset")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def rules(self) -> typing.Optional[typing.List["PrometheusRuleSpecGroupsRules"]]:
        '''
        :schema: PrometheusRuleSpecGroups#rules
        '''
        result = self._values.get("rules")
        return typing.cast(typing.Optional[typing.List["PrometheusRuleSpecGroupsRules"]], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PrometheusRuleSpecGroups(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.PrometheusRuleSpecGroupsRules",
    jsii_struct_bases=[],
    name_mapping={
        "expr": "expr",
        "alert": "alert",
        "annotations": "annotations",
        "for_": "for",
        "keep_firing_for": "keepFiringFor",
        "labels": "labels",
        "record": "record",
    },
)
class PrometheusRuleSpecGroupsRules:
    def __init__(
        self,
        *,
        expr: "PrometheusRuleSpecGroupsRulesExpr",
        alert: typing.Optional[builtins.str] = None,
        annotations: typing.Optional[typing.Mapping[builtins.str, builtins.str]] = None,
        for_: typing.Optional[builtins.str] = None,
        keep_firing_for: typing.Optional[builtins.str] = None,
        labels: typing.Optional[typing.Mapping[builtins.str, builtins.str]] = None,
        record: typing.Optional[builtins.str] = None,
    ) -> None:
        '''
        :param expr: 
        :param alert: 
        :param annotations: 
        :param for_: 
        :param keep_firing_for: 
        :param labels: 
        :param record: 

        :schema: PrometheusRuleSpecGroupsRules
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__0c1781d51e64e7d339630495159adc2c953dc730d79c53f3189530376fc669b9)
            check_type(argname="argument expr", value=expr, expected_type=type_hints["expr"])
            check_type(argname="argument alert", value=alert, expected_type=type_hints["alert"])
            check_type(argname="argument annotations", value=annotations, expected_type=type_hints["annotations"])
            check_type(argname="argument for_", value=for_, expected_type=type_hints["for_"])
            check_type(argname="argument keep_firing_for", value=keep_firing_for, expected_type=type_hints["keep_firing_for"])
            check_type(argname="argument labels", value=labels, expected_type=type_hints["labels"])
            check_type(argname="argument record", value=record, expected_type=type_hints["record"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "expr": expr,
        }
        if alert is not None:
            self._values["alert"] = alert
        if annotations is not None:
            self._values["annotations"] = annotations
        if for_ is not None:
            self._values["for_"] = for_
        if keep_firing_for is not None:
            self._values["keep_firing_for"] = keep_firing_for
        if labels is not None:
            self._values["labels"] = labels
        if record is not None:
            self._values["record"] = record

    @builtins.property
    def expr(self) -> "PrometheusRuleSpecGroupsRulesExpr":
        '''
        :schema: PrometheusRuleSpecGroupsRules#expr
        '''
        result = self._values.get("expr")
        assert result is not None, "Required property 'expr' is missing"
        return typing.cast("PrometheusRuleSpecGroupsRulesExpr", result)

    @builtins.property
    def alert(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PrometheusRuleSpecGroupsRules#alert
        '''
        result = self._values.get("alert")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def annotations(
        self,
    ) -> typing.Optional[typing.Mapping[builtins.str, builtins.str]]:
        '''
        :schema: PrometheusRuleSpecGroupsRules#annotations
        '''
        result = self._values.get("annotations")
        return typing.cast(typing.Optional[typing.Mapping[builtins.str, builtins.str]], result)

    @builtins.property
    def for_(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PrometheusRuleSpecGroupsRules#for
        '''
        result = self._values.get("for_")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def keep_firing_for(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PrometheusRuleSpecGroupsRules#keep_firing_for
        '''
        result = self._values.get("keep_firing_for")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def labels(self) -> typing.Optional[typing.Mapping[builtins.str, builtins.str]]:
        '''
        :schema: PrometheusRuleSpecGroupsRules#labels
        '''
        result = self._values.get("labels")
        return typing.cast(typing.Optional[typing.Mapping[builtins.str, builtins.str]], result)

    @builtins.property
    def record(self) -> typing.Optional[builtins.str]:
        '''
        :schema: PrometheusRuleSpecGroupsRules#record
        '''
        result = self._values.get("record")
        return typing.cast(typing.Optional[builtins.str], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "PrometheusRuleSpecGroupsRules(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


class PrometheusRuleSpecGroupsRulesExpr(
    metaclass=jsii.JSIIMeta,
    jsii_type="comcoreosmonitoring.PrometheusRuleSpecGroupsRulesExpr",
):
    '''
    :schema: PrometheusRuleSpecGroupsRulesExpr
    '''

    @jsii.member(jsii_name="fromNumber")
    @builtins.classmethod
    def from_number(cls, value: jsii.Number) -> "PrometheusRuleSpecGroupsRulesExpr":
        '''
        :param value: -
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__9d15b24abce544d261347136c421e3c3bfbe004b752ee51d2e6592a3954913ed)
            check_type(argname="argument value", value=value, expected_type=type_hints["value"])
        return typing.cast("PrometheusRuleSpecGroupsRulesExpr", jsii.sinvoke(cls, "fromNumber", [value]))

    @jsii.member(jsii_name="fromString")
    @builtins.classmethod
    def from_string(cls, value: builtins.str) -> "PrometheusRuleSpecGroupsRulesExpr":
        '''
        :param value: -
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__2a72830e7b4ad0667279eb3ab8cb70176dad9058a7eb51c8c68421e360cc0cad)
            check_type(argname="argument value", value=value, expected_type=type_hints["value"])
        return typing.cast("PrometheusRuleSpecGroupsRulesExpr", jsii.sinvoke(cls, "fromString", [value]))

    @builtins.property
    @jsii.member(jsii_name="value")
    def value(self) -> typing.Union[builtins.str, jsii.Number]:
        return typing.cast(typing.Union[builtins.str, jsii.Number], jsii.get(self, "value"))


class ServiceMonitor(
    _cdk8s_d3d9af27.ApiObject,
    metaclass=jsii.JSIIMeta,
    jsii_type="comcoreosmonitoring.ServiceMonitor",
):
    '''
    :schema: ServiceMonitor
    '''

    def __init__(
        self,
        scope: "_constructs_77d1e7e8.Construct",
        id: builtins.str,
        *,
        spec: typing.Union["ServiceMonitorSpec", typing.Dict[builtins.str, typing.Any]],
        metadata: typing.Optional[typing.Union["_cdk8s_d3d9af27.ApiObjectMetadata", typing.Dict[builtins.str, typing.Any]]] = None,
    ) -> None:
        '''Defines a "ServiceMonitor" API object.

        :param scope: the scope in which to define this object.
        :param id: a scope-local name for the object.
        :param spec: 
        :param metadata: 
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__ae743b5825b3e6075ede1500d52f893c3c6a63be14f647f9a44d0e722d356470)
            check_type(argname="argument scope", value=scope, expected_type=type_hints["scope"])
            check_type(argname="argument id", value=id, expected_type=type_hints["id"])
        props = ServiceMonitorProps(spec=spec, metadata=metadata)

        jsii.create(self.__class__, self, [scope, id, props])

    @jsii.member(jsii_name="manifest")
    @builtins.classmethod
    def manifest(
        cls,
        *,
        spec: typing.Union["ServiceMonitorSpec", typing.Dict[builtins.str, typing.Any]],
        metadata: typing.Optional[typing.Union["_cdk8s_d3d9af27.ApiObjectMetadata", typing.Dict[builtins.str, typing.Any]]] = None,
    ) -> typing.Any:
        '''Renders a Kubernetes manifest for "ServiceMonitor".

        This can be used to inline resource manifests inside other objects (e.g. as templates).

        :param spec: 
        :param metadata: 
        '''
        props = ServiceMonitorProps(spec=spec, metadata=metadata)

        return typing.cast(typing.Any, jsii.sinvoke(cls, "manifest", [props]))

    @jsii.member(jsii_name="toJson")
    def to_json(self) -> typing.Any:
        '''Renders the object to Kubernetes JSON.'''
        return typing.cast(typing.Any, jsii.invoke(self, "toJson", []))

    @jsii.python.classproperty
    @jsii.member(jsii_name="GVK")
    def GVK(cls) -> "_cdk8s_d3d9af27.GroupVersionKind":
        '''Returns the apiVersion and kind for "ServiceMonitor".'''
        return typing.cast("_cdk8s_d3d9af27.GroupVersionKind", jsii.sget(cls, "GVK"))


@jsii.data_type(
    jsii_type="comcoreosmonitoring.ServiceMonitorProps",
    jsii_struct_bases=[],
    name_mapping={"spec": "spec", "metadata": "metadata"},
)
class ServiceMonitorProps:
    def __init__(
        self,
        *,
        spec: typing.Union["ServiceMonitorSpec", typing.Dict[builtins.str, typing.Any]],
        metadata: typing.Optional[typing.Union["_cdk8s_d3d9af27.ApiObjectMetadata", typing.Dict[builtins.str, typing.Any]]] = None,
    ) -> None:
        '''
        :param spec: 
        :param metadata: 

        :schema: ServiceMonitor
        '''
        if isinstance(spec, dict):
            spec = ServiceMonitorSpec(**spec)
        if isinstance(metadata, dict):
            metadata = _cdk8s_d3d9af27.ApiObjectMetadata(**metadata)
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__56bca6778cf6036cd0140b25f1a1429742323914ee819ae9276e47c0e290aaf5)
            check_type(argname="argument spec", value=spec, expected_type=type_hints["spec"])
            check_type(argname="argument metadata", value=metadata, expected_type=type_hints["metadata"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "spec": spec,
        }
        if metadata is not None:
            self._values["metadata"] = metadata

    @builtins.property
    def spec(self) -> "ServiceMonitorSpec":
        '''
        :schema: ServiceMonitor#spec
        '''
        result = self._values.get("spec")
        assert result is not None, "Required property 'spec' is missing"
        return typing.cast("ServiceMonitorSpec", result)

    @builtins.property
    def metadata(self) -> typing.Optional["_cdk8s_d3d9af27.ApiObjectMetadata"]:
        '''
        :schema: ServiceMonitor#metadata
        '''
        result = self._values.get("metadata")
        return typing.cast(typing.Optional["_cdk8s_d3d9af27.ApiObjectMetadata"], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "ServiceMonitorProps(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpec",
    jsii_struct_bases=[],
    name_mapping={
        "endpoints": "endpoints",
        "selector": "selector",
        "attach_metadata": "attachMetadata",
        "body_size_limit": "bodySizeLimit",
        "convert_classic_histograms_to_nhcb": "convertClassicHistogramsToNhcb",
        "fallback_scrape_protocol": "fallbackScrapeProtocol",
        "job_label": "jobLabel",
        "keep_dropped_targets": "keepDroppedTargets",
        "label_limit": "labelLimit",
        "label_name_length_limit": "labelNameLengthLimit",
        "label_value_length_limit": "labelValueLengthLimit",
        "namespace_selector": "namespaceSelector",
        "native_histogram_bucket_limit": "nativeHistogramBucketLimit",
        "native_histogram_min_bucket_factor": "nativeHistogramMinBucketFactor",
        "pod_target_labels": "podTargetLabels",
        "sample_limit": "sampleLimit",
        "scrape_class": "scrapeClass",
        "scrape_classic_histograms": "scrapeClassicHistograms",
        "scrape_native_histograms": "scrapeNativeHistograms",
        "scrape_protocols": "scrapeProtocols",
        "selector_mechanism": "selectorMechanism",
        "service_discovery_role": "serviceDiscoveryRole",
        "target_labels": "targetLabels",
        "target_limit": "targetLimit",
    },
)
class ServiceMonitorSpec:
    def __init__(
        self,
        *,
        endpoints: typing.Sequence[typing.Union["ServiceMonitorSpecEndpoints", typing.Dict[builtins.str, typing.Any]]],
        selector: typing.Union["ServiceMonitorSpecSelector", typing.Dict[builtins.str, typing.Any]],
        attach_metadata: typing.Optional[typing.Union["ServiceMonitorSpecAttachMetadata", typing.Dict[builtins.str, typing.Any]]] = None,
        body_size_limit: typing.Optional[builtins.str] = None,
        convert_classic_histograms_to_nhcb: typing.Optional[builtins.bool] = None,
        fallback_scrape_protocol: typing.Optional["ServiceMonitorSpecFallbackScrapeProtocol"] = None,
        job_label: typing.Optional[builtins.str] = None,
        keep_dropped_targets: typing.Optional[jsii.Number] = None,
        label_limit: typing.Optional[jsii.Number] = None,
        label_name_length_limit: typing.Optional[jsii.Number] = None,
        label_value_length_limit: typing.Optional[jsii.Number] = None,
        namespace_selector: typing.Optional[typing.Union["ServiceMonitorSpecNamespaceSelector", typing.Dict[builtins.str, typing.Any]]] = None,
        native_histogram_bucket_limit: typing.Optional[jsii.Number] = None,
        native_histogram_min_bucket_factor: typing.Optional["ServiceMonitorSpecNativeHistogramMinBucketFactor"] = None,
        pod_target_labels: typing.Optional[typing.Sequence[builtins.str]] = None,
        sample_limit: typing.Optional[jsii.Number] = None,
        scrape_class: typing.Optional[builtins.str] = None,
        scrape_classic_histograms: typing.Optional[builtins.bool] = None,
        scrape_native_histograms: typing.Optional[builtins.bool] = None,
        scrape_protocols: typing.Optional[typing.Sequence["ServiceMonitorSpecScrapeProtocols"]] = None,
        selector_mechanism: typing.Optional["ServiceMonitorSpecSelectorMechanism"] = None,
        service_discovery_role: typing.Optional["ServiceMonitorSpecServiceDiscoveryRole"] = None,
        target_labels: typing.Optional[typing.Sequence[builtins.str]] = None,
        target_limit: typing.Optional[jsii.Number] = None,
    ) -> None:
        '''
        :param endpoints: 
        :param selector: 
        :param attach_metadata: 
        :param body_size_limit: 
        :param convert_classic_histograms_to_nhcb: 
        :param fallback_scrape_protocol: 
        :param job_label: 
        :param keep_dropped_targets: 
        :param label_limit: 
        :param label_name_length_limit: 
        :param label_value_length_limit: 
        :param namespace_selector: 
        :param native_histogram_bucket_limit: 
        :param native_histogram_min_bucket_factor: 
        :param pod_target_labels: 
        :param sample_limit: 
        :param scrape_class: 
        :param scrape_classic_histograms: 
        :param scrape_native_histograms: 
        :param scrape_protocols: 
        :param selector_mechanism: 
        :param service_discovery_role: 
        :param target_labels: 
        :param target_limit: 

        :schema: ServiceMonitorSpec
        '''
        if isinstance(selector, dict):
            selector = ServiceMonitorSpecSelector(**selector)
        if isinstance(attach_metadata, dict):
            attach_metadata = ServiceMonitorSpecAttachMetadata(**attach_metadata)
        if isinstance(namespace_selector, dict):
            namespace_selector = ServiceMonitorSpecNamespaceSelector(**namespace_selector)
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__77dad9e9e97980d2d9001de098d81faeb424d5144d09285dc28512f29a3815ba)
            check_type(argname="argument endpoints", value=endpoints, expected_type=type_hints["endpoints"])
            check_type(argname="argument selector", value=selector, expected_type=type_hints["selector"])
            check_type(argname="argument attach_metadata", value=attach_metadata, expected_type=type_hints["attach_metadata"])
            check_type(argname="argument body_size_limit", value=body_size_limit, expected_type=type_hints["body_size_limit"])
            check_type(argname="argument convert_classic_histograms_to_nhcb", value=convert_classic_histograms_to_nhcb, expected_type=type_hints["convert_classic_histograms_to_nhcb"])
            check_type(argname="argument fallback_scrape_protocol", value=fallback_scrape_protocol, expected_type=type_hints["fallback_scrape_protocol"])
            check_type(argname="argument job_label", value=job_label, expected_type=type_hints["job_label"])
            check_type(argname="argument keep_dropped_targets", value=keep_dropped_targets, expected_type=type_hints["keep_dropped_targets"])
            check_type(argname="argument label_limit", value=label_limit, expected_type=type_hints["label_limit"])
            check_type(argname="argument label_name_length_limit", value=label_name_length_limit, expected_type=type_hints["label_name_length_limit"])
            check_type(argname="argument label_value_length_limit", value=label_value_length_limit, expected_type=type_hints["label_value_length_limit"])
            check_type(argname="argument namespace_selector", value=namespace_selector, expected_type=type_hints["namespace_selector"])
            check_type(argname="argument native_histogram_bucket_limit", value=native_histogram_bucket_limit, expected_type=type_hints["native_histogram_bucket_limit"])
            check_type(argname="argument native_histogram_min_bucket_factor", value=native_histogram_min_bucket_factor, expected_type=type_hints["native_histogram_min_bucket_factor"])
            check_type(argname="argument pod_target_labels", value=pod_target_labels, expected_type=type_hints["pod_target_labels"])
            check_type(argname="argument sample_limit", value=sample_limit, expected_type=type_hints["sample_limit"])
            check_type(argname="argument scrape_class", value=scrape_class, expected_type=type_hints["scrape_class"])
            check_type(argname="argument scrape_classic_histograms", value=scrape_classic_histograms, expected_type=type_hints["scrape_classic_histograms"])
            check_type(argname="argument scrape_native_histograms", value=scrape_native_histograms, expected_type=type_hints["scrape_native_histograms"])
            check_type(argname="argument scrape_protocols", value=scrape_protocols, expected_type=type_hints["scrape_protocols"])
            check_type(argname="argument selector_mechanism", value=selector_mechanism, expected_type=type_hints["selector_mechanism"])
            check_type(argname="argument service_discovery_role", value=service_discovery_role, expected_type=type_hints["service_discovery_role"])
            check_type(argname="argument target_labels", value=target_labels, expected_type=type_hints["target_labels"])
            check_type(argname="argument target_limit", value=target_limit, expected_type=type_hints["target_limit"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "endpoints": endpoints,
            "selector": selector,
        }
        if attach_metadata is not None:
            self._values["attach_metadata"] = attach_metadata
        if body_size_limit is not None:
            self._values["body_size_limit"] = body_size_limit
        if convert_classic_histograms_to_nhcb is not None:
            self._values["convert_classic_histograms_to_nhcb"] = convert_classic_histograms_to_nhcb
        if fallback_scrape_protocol is not None:
            self._values["fallback_scrape_protocol"] = fallback_scrape_protocol
        if job_label is not None:
            self._values["job_label"] = job_label
        if keep_dropped_targets is not None:
            self._values["keep_dropped_targets"] = keep_dropped_targets
        if label_limit is not None:
            self._values["label_limit"] = label_limit
        if label_name_length_limit is not None:
            self._values["label_name_length_limit"] = label_name_length_limit
        if label_value_length_limit is not None:
            self._values["label_value_length_limit"] = label_value_length_limit
        if namespace_selector is not None:
            self._values["namespace_selector"] = namespace_selector
        if native_histogram_bucket_limit is not None:
            self._values["native_histogram_bucket_limit"] = native_histogram_bucket_limit
        if native_histogram_min_bucket_factor is not None:
            self._values["native_histogram_min_bucket_factor"] = native_histogram_min_bucket_factor
        if pod_target_labels is not None:
            self._values["pod_target_labels"] = pod_target_labels
        if sample_limit is not None:
            self._values["sample_limit"] = sample_limit
        if scrape_class is not None:
            self._values["scrape_class"] = scrape_class
        if scrape_classic_histograms is not None:
            self._values["scrape_classic_histograms"] = scrape_classic_histograms
        if scrape_native_histograms is not None:
            self._values["scrape_native_histograms"] = scrape_native_histograms
        if scrape_protocols is not None:
            self._values["scrape_protocols"] = scrape_protocols
        if selector_mechanism is not None:
            self._values["selector_mechanism"] = selector_mechanism
        if service_discovery_role is not None:
            self._values["service_discovery_role"] = service_discovery_role
        if target_labels is not None:
            self._values["target_labels"] = target_labels
        if target_limit is not None:
            self._values["target_limit"] = target_limit

    @builtins.property
    def endpoints(self) -> typing.List["ServiceMonitorSpecEndpoints"]:
        '''
        :schema: ServiceMonitorSpec#endpoints
        '''
        result = self._values.get("endpoints")
        assert result is not None, "Required property 'endpoints' is missing"
        return typing.cast(typing.List["ServiceMonitorSpecEndpoints"], result)

    @builtins.property
    def selector(self) -> "ServiceMonitorSpecSelector":
        '''
        :schema: ServiceMonitorSpec#selector
        '''
        result = self._values.get("selector")
        assert result is not None, "Required property 'selector' is missing"
        return typing.cast("ServiceMonitorSpecSelector", result)

    @builtins.property
    def attach_metadata(self) -> typing.Optional["ServiceMonitorSpecAttachMetadata"]:
        '''
        :schema: ServiceMonitorSpec#attachMetadata
        '''
        result = self._values.get("attach_metadata")
        return typing.cast(typing.Optional["ServiceMonitorSpecAttachMetadata"], result)

    @builtins.property
    def body_size_limit(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpec#bodySizeLimit
        '''
        result = self._values.get("body_size_limit")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def convert_classic_histograms_to_nhcb(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: ServiceMonitorSpec#convertClassicHistogramsToNHCB
        '''
        result = self._values.get("convert_classic_histograms_to_nhcb")
        return typing.cast(typing.Optional[builtins.bool], result)

    @builtins.property
    def fallback_scrape_protocol(
        self,
    ) -> typing.Optional["ServiceMonitorSpecFallbackScrapeProtocol"]:
        '''
        :schema: ServiceMonitorSpec#fallbackScrapeProtocol
        '''
        result = self._values.get("fallback_scrape_protocol")
        return typing.cast(typing.Optional["ServiceMonitorSpecFallbackScrapeProtocol"], result)

    @builtins.property
    def job_label(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpec#jobLabel
        '''
        result = self._values.get("job_label")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def keep_dropped_targets(self) -> typing.Optional[jsii.Number]:
        '''
        :schema: ServiceMonitorSpec#keepDroppedTargets
        '''
        result = self._values.get("keep_dropped_targets")
        return typing.cast(typing.Optional[jsii.Number], result)

    @builtins.property
    def label_limit(self) -> typing.Optional[jsii.Number]:
        '''
        :schema: ServiceMonitorSpec#labelLimit
        '''
        result = self._values.get("label_limit")
        return typing.cast(typing.Optional[jsii.Number], result)

    @builtins.property
    def label_name_length_limit(self) -> typing.Optional[jsii.Number]:
        '''
        :schema: ServiceMonitorSpec#labelNameLengthLimit
        '''
        result = self._values.get("label_name_length_limit")
        return typing.cast(typing.Optional[jsii.Number], result)

    @builtins.property
    def label_value_length_limit(self) -> typing.Optional[jsii.Number]:
        '''
        :schema: ServiceMonitorSpec#labelValueLengthLimit
        '''
        result = self._values.get("label_value_length_limit")
        return typing.cast(typing.Optional[jsii.Number], result)

    @builtins.property
    def namespace_selector(
        self,
    ) -> typing.Optional["ServiceMonitorSpecNamespaceSelector"]:
        '''
        :schema: ServiceMonitorSpec#namespaceSelector
        '''
        result = self._values.get("namespace_selector")
        return typing.cast(typing.Optional["ServiceMonitorSpecNamespaceSelector"], result)

    @builtins.property
    def native_histogram_bucket_limit(self) -> typing.Optional[jsii.Number]:
        '''
        :schema: ServiceMonitorSpec#nativeHistogramBucketLimit
        '''
        result = self._values.get("native_histogram_bucket_limit")
        return typing.cast(typing.Optional[jsii.Number], result)

    @builtins.property
    def native_histogram_min_bucket_factor(
        self,
    ) -> typing.Optional["ServiceMonitorSpecNativeHistogramMinBucketFactor"]:
        '''
        :schema: ServiceMonitorSpec#nativeHistogramMinBucketFactor
        '''
        result = self._values.get("native_histogram_min_bucket_factor")
        return typing.cast(typing.Optional["ServiceMonitorSpecNativeHistogramMinBucketFactor"], result)

    @builtins.property
    def pod_target_labels(self) -> typing.Optional[typing.List[builtins.str]]:
        '''
        :schema: ServiceMonitorSpec#podTargetLabels
        '''
        result = self._values.get("pod_target_labels")
        return typing.cast(typing.Optional[typing.List[builtins.str]], result)

    @builtins.property
    def sample_limit(self) -> typing.Optional[jsii.Number]:
        '''
        :schema: ServiceMonitorSpec#sampleLimit
        '''
        result = self._values.get("sample_limit")
        return typing.cast(typing.Optional[jsii.Number], result)

    @builtins.property
    def scrape_class(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpec#scrapeClass
        '''
        result = self._values.get("scrape_class")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def scrape_classic_histograms(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: ServiceMonitorSpec#scrapeClassicHistograms
        '''
        result = self._values.get("scrape_classic_histograms")
        return typing.cast(typing.Optional[builtins.bool], result)

    @builtins.property
    def scrape_native_histograms(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: ServiceMonitorSpec#scrapeNativeHistograms
        '''
        result = self._values.get("scrape_native_histograms")
        return typing.cast(typing.Optional[builtins.bool], result)

    @builtins.property
    def scrape_protocols(
        self,
    ) -> typing.Optional[typing.List["ServiceMonitorSpecScrapeProtocols"]]:
        '''
        :schema: ServiceMonitorSpec#scrapeProtocols
        '''
        result = self._values.get("scrape_protocols")
        return typing.cast(typing.Optional[typing.List["ServiceMonitorSpecScrapeProtocols"]], result)

    @builtins.property
    def selector_mechanism(
        self,
    ) -> typing.Optional["ServiceMonitorSpecSelectorMechanism"]:
        '''
        :schema: ServiceMonitorSpec#selectorMechanism
        '''
        result = self._values.get("selector_mechanism")
        return typing.cast(typing.Optional["ServiceMonitorSpecSelectorMechanism"], result)

    @builtins.property
    def service_discovery_role(
        self,
    ) -> typing.Optional["ServiceMonitorSpecServiceDiscoveryRole"]:
        '''
        :schema: ServiceMonitorSpec#serviceDiscoveryRole
        '''
        result = self._values.get("service_discovery_role")
        return typing.cast(typing.Optional["ServiceMonitorSpecServiceDiscoveryRole"], result)

    @builtins.property
    def target_labels(self) -> typing.Optional[typing.List[builtins.str]]:
        '''
        :schema: ServiceMonitorSpec#targetLabels
        '''
        result = self._values.get("target_labels")
        return typing.cast(typing.Optional[typing.List[builtins.str]], result)

    @builtins.property
    def target_limit(self) -> typing.Optional[jsii.Number]:
        '''
        :schema: ServiceMonitorSpec#targetLimit
        '''
        result = self._values.get("target_limit")
        return typing.cast(typing.Optional[jsii.Number], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "ServiceMonitorSpec(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecAttachMetadata",
    jsii_struct_bases=[],
    name_mapping={"node": "node"},
)
class ServiceMonitorSpecAttachMetadata:
    def __init__(self, *, node: typing.Optional[builtins.bool] = None) -> None:
        '''
        :param node: 

        :schema: ServiceMonitorSpecAttachMetadata
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__2bbe935572488af708dc3190e619dcc20410fc1feb14d189191dcc70c240bc2a)
            check_type(argname="argument node", value=node, expected_type=type_hints["node"])
        self._values: typing.Dict[builtins.str, typing.Any] = {}
        if node is not None:
            self._values["node"] = node

    @builtins.property
    def node(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: ServiceMonitorSpecAttachMetadata#node
        '''
        result = self._values.get("node")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "ServiceMonitorSpecAttachMetadata(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpoints",
    jsii_struct_bases=[],
    name_mapping={
        "authorization": "authorization",
        "basic_auth": "basicAuth",
        "bearer_token_file": "bearerTokenFile",
        "bearer_token_secret": "bearerTokenSecret",
        "enable_http2": "enableHttp2",
        "filter_running": "filterRunning",
        "follow_redirects": "followRedirects",
        "honor_labels": "honorLabels",
        "honor_timestamps": "honorTimestamps",
        "interval": "interval",
        "metric_relabelings": "metricRelabelings",
        "no_proxy": "noProxy",
        "oauth2": "oauth2",
        "params": "params",
        "path": "path",
        "port": "port",
        "proxy_connect_header": "proxyConnectHeader",
        "proxy_from_environment": "proxyFromEnvironment",
        "proxy_url": "proxyUrl",
        "relabelings": "relabelings",
        "scheme": "scheme",
        "scrape_timeout": "scrapeTimeout",
        "target_port": "targetPort",
        "tls_config": "tlsConfig",
        "track_timestamps_staleness": "trackTimestampsStaleness",
    },
)
class ServiceMonitorSpecEndpoints:
    def __init__(
        self,
        *,
        authorization: typing.Optional[typing.Union["ServiceMonitorSpecEndpointsAuthorization", typing.Dict[builtins.str, typing.Any]]] = None,
        basic_auth: typing.Optional[typing.Union["ServiceMonitorSpecEndpointsBasicAuth", typing.Dict[builtins.str, typing.Any]]] = None,
        bearer_token_file: typing.Optional[builtins.str] = None,
        bearer_token_secret: typing.Optional[typing.Union["ServiceMonitorSpecEndpointsBearerTokenSecret", typing.Dict[builtins.str, typing.Any]]] = None,
        enable_http2: typing.Optional[builtins.bool] = None,
        filter_running: typing.Optional[builtins.bool] = None,
        follow_redirects: typing.Optional[builtins.bool] = None,
        honor_labels: typing.Optional[builtins.bool] = None,
        honor_timestamps: typing.Optional[builtins.bool] = None,
        interval: typing.Optional[builtins.str] = None,
        metric_relabelings: typing.Optional[typing.Sequence[typing.Union["ServiceMonitorSpecEndpointsMetricRelabelings", typing.Dict[builtins.str, typing.Any]]]] = None,
        no_proxy: typing.Optional[builtins.str] = None,
        oauth2: typing.Optional[typing.Union["ServiceMonitorSpecEndpointsOauth2", typing.Dict[builtins.str, typing.Any]]] = None,
        params: typing.Optional[typing.Mapping[builtins.str, typing.Sequence[builtins.str]]] = None,
        path: typing.Optional[builtins.str] = None,
        port: typing.Optional[builtins.str] = None,
        proxy_connect_header: typing.Optional[typing.Mapping[builtins.str, typing.Sequence[typing.Union["ServiceMonitorSpecEndpointsProxyConnectHeader", typing.Dict[builtins.str, typing.Any]]]]] = None,
        proxy_from_environment: typing.Optional[builtins.bool] = None,
        proxy_url: typing.Optional[builtins.str] = None,
        relabelings: typing.Optional[typing.Sequence[typing.Union["ServiceMonitorSpecEndpointsRelabelings", typing.Dict[builtins.str, typing.Any]]]] = None,
        scheme: typing.Optional["ServiceMonitorSpecEndpointsScheme"] = None,
        scrape_timeout: typing.Optional[builtins.str] = None,
        target_port: typing.Optional["ServiceMonitorSpecEndpointsTargetPort"] = None,
        tls_config: typing.Optional[typing.Union["ServiceMonitorSpecEndpointsTlsConfig", typing.Dict[builtins.str, typing.Any]]] = None,
        track_timestamps_staleness: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param authorization: 
        :param basic_auth: 
        :param bearer_token_file: 
        :param bearer_token_secret: 
        :param enable_http2: 
        :param filter_running: 
        :param follow_redirects: 
        :param honor_labels: 
        :param honor_timestamps: 
        :param interval: 
        :param metric_relabelings: 
        :param no_proxy: 
        :param oauth2: 
        :param params: 
        :param path: 
        :param port: 
        :param proxy_connect_header: 
        :param proxy_from_environment: 
        :param proxy_url: 
        :param relabelings: 
        :param scheme: 
        :param scrape_timeout: 
        :param target_port: 
        :param tls_config: 
        :param track_timestamps_staleness: 

        :schema: ServiceMonitorSpecEndpoints
        '''
        if isinstance(authorization, dict):
            authorization = ServiceMonitorSpecEndpointsAuthorization(**authorization)
        if isinstance(basic_auth, dict):
            basic_auth = ServiceMonitorSpecEndpointsBasicAuth(**basic_auth)
        if isinstance(bearer_token_secret, dict):
            bearer_token_secret = ServiceMonitorSpecEndpointsBearerTokenSecret(**bearer_token_secret)
        if isinstance(oauth2, dict):
            oauth2 = ServiceMonitorSpecEndpointsOauth2(**oauth2)
        if isinstance(tls_config, dict):
            tls_config = ServiceMonitorSpecEndpointsTlsConfig(**tls_config)
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__0387a341502661c257fa633a8de56a63d951087fafafcbad7e1c75709428ef9f)
            check_type(argname="argument authorization", value=authorization, expected_type=type_hints["authorization"])
            check_type(argname="argument basic_auth", value=basic_auth, expected_type=type_hints["basic_auth"])
            check_type(argname="argument bearer_token_file", value=bearer_token_file, expected_type=type_hints["bearer_token_file"])
            check_type(argname="argument bearer_token_secret", value=bearer_token_secret, expected_type=type_hints["bearer_token_secret"])
            check_type(argname="argument enable_http2", value=enable_http2, expected_type=type_hints["enable_http2"])
            check_type(argname="argument filter_running", value=filter_running, expected_type=type_hints["filter_running"])
            check_type(argname="argument follow_redirects", value=follow_redirects, expected_type=type_hints["follow_redirects"])
            check_type(argname="argument honor_labels", value=honor_labels, expected_type=type_hints["honor_labels"])
            check_type(argname="argument honor_timestamps", value=honor_timestamps, expected_type=type_hints["honor_timestamps"])
            check_type(argname="argument interval", value=interval, expected_type=type_hints["interval"])
            check_type(argname="argument metric_relabelings", value=metric_relabelings, expected_type=type_hints["metric_relabelings"])
            check_type(argname="argument no_proxy", value=no_proxy, expected_type=type_hints["no_proxy"])
            check_type(argname="argument oauth2", value=oauth2, expected_type=type_hints["oauth2"])
            check_type(argname="argument params", value=params, expected_type=type_hints["params"])
            check_type(argname="argument path", value=path, expected_type=type_hints["path"])
            check_type(argname="argument port", value=port, expected_type=type_hints["port"])
            check_type(argname="argument proxy_connect_header", value=proxy_connect_header, expected_type=type_hints["proxy_connect_header"])
            check_type(argname="argument proxy_from_environment", value=proxy_from_environment, expected_type=type_hints["proxy_from_environment"])
            check_type(argname="argument proxy_url", value=proxy_url, expected_type=type_hints["proxy_url"])
            check_type(argname="argument relabelings", value=relabelings, expected_type=type_hints["relabelings"])
            check_type(argname="argument scheme", value=scheme, expected_type=type_hints["scheme"])
            check_type(argname="argument scrape_timeout", value=scrape_timeout, expected_type=type_hints["scrape_timeout"])
            check_type(argname="argument target_port", value=target_port, expected_type=type_hints["target_port"])
            check_type(argname="argument tls_config", value=tls_config, expected_type=type_hints["tls_config"])
            check_type(argname="argument track_timestamps_staleness", value=track_timestamps_staleness, expected_type=type_hints["track_timestamps_staleness"])
        self._values: typing.Dict[builtins.str, typing.Any] = {}
        if authorization is not None:
            self._values["authorization"] = authorization
        if basic_auth is not None:
            self._values["basic_auth"] = basic_auth
        if bearer_token_file is not None:
            self._values["bearer_token_file"] = bearer_token_file
        if bearer_token_secret is not None:
            self._values["bearer_token_secret"] = bearer_token_secret
        if enable_http2 is not None:
            self._values["enable_http2"] = enable_http2
        if filter_running is not None:
            self._values["filter_running"] = filter_running
        if follow_redirects is not None:
            self._values["follow_redirects"] = follow_redirects
        if honor_labels is not None:
            self._values["honor_labels"] = honor_labels
        if honor_timestamps is not None:
            self._values["honor_timestamps"] = honor_timestamps
        if interval is not None:
            self._values["interval"] = interval
        if metric_relabelings is not None:
            self._values["metric_relabelings"] = metric_relabelings
        if no_proxy is not None:
            self._values["no_proxy"] = no_proxy
        if oauth2 is not None:
            self._values["oauth2"] = oauth2
        if params is not None:
            self._values["params"] = params
        if path is not None:
            self._values["path"] = path
        if port is not None:
            self._values["port"] = port
        if proxy_connect_header is not None:
            self._values["proxy_connect_header"] = proxy_connect_header
        if proxy_from_environment is not None:
            self._values["proxy_from_environment"] = proxy_from_environment
        if proxy_url is not None:
            self._values["proxy_url"] = proxy_url
        if relabelings is not None:
            self._values["relabelings"] = relabelings
        if scheme is not None:
            self._values["scheme"] = scheme
        if scrape_timeout is not None:
            self._values["scrape_timeout"] = scrape_timeout
        if target_port is not None:
            self._values["target_port"] = target_port
        if tls_config is not None:
            self._values["tls_config"] = tls_config
        if track_timestamps_staleness is not None:
            self._values["track_timestamps_staleness"] = track_timestamps_staleness

    @builtins.property
    def authorization(
        self,
    ) -> typing.Optional["ServiceMonitorSpecEndpointsAuthorization"]:
        '''
        :schema: ServiceMonitorSpecEndpoints#authorization
        '''
        result = self._values.get("authorization")
        return typing.cast(typing.Optional["ServiceMonitorSpecEndpointsAuthorization"], result)

    @builtins.property
    def basic_auth(self) -> typing.Optional["ServiceMonitorSpecEndpointsBasicAuth"]:
        '''
        :schema: ServiceMonitorSpecEndpoints#basicAuth
        '''
        result = self._values.get("basic_auth")
        return typing.cast(typing.Optional["ServiceMonitorSpecEndpointsBasicAuth"], result)

    @builtins.property
    def bearer_token_file(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpoints#bearerTokenFile
        '''
        result = self._values.get("bearer_token_file")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def bearer_token_secret(
        self,
    ) -> typing.Optional["ServiceMonitorSpecEndpointsBearerTokenSecret"]:
        '''
        :schema: ServiceMonitorSpecEndpoints#bearerTokenSecret
        '''
        result = self._values.get("bearer_token_secret")
        return typing.cast(typing.Optional["ServiceMonitorSpecEndpointsBearerTokenSecret"], result)

    @builtins.property
    def enable_http2(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: ServiceMonitorSpecEndpoints#enableHttp2
        '''
        result = self._values.get("enable_http2")
        return typing.cast(typing.Optional[builtins.bool], result)

    @builtins.property
    def filter_running(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: ServiceMonitorSpecEndpoints#filterRunning
        '''
        result = self._values.get("filter_running")
        return typing.cast(typing.Optional[builtins.bool], result)

    @builtins.property
    def follow_redirects(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: ServiceMonitorSpecEndpoints#followRedirects
        '''
        result = self._values.get("follow_redirects")
        return typing.cast(typing.Optional[builtins.bool], result)

    @builtins.property
    def honor_labels(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: ServiceMonitorSpecEndpoints#honorLabels
        '''
        result = self._values.get("honor_labels")
        return typing.cast(typing.Optional[builtins.bool], result)

    @builtins.property
    def honor_timestamps(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: ServiceMonitorSpecEndpoints#honorTimestamps
        '''
        result = self._values.get("honor_timestamps")
        return typing.cast(typing.Optional[builtins.bool], result)

    @builtins.property
    def interval(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpoints#interval
        '''
        result = self._values.get("interval")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def metric_relabelings(
        self,
    ) -> typing.Optional[typing.List["ServiceMonitorSpecEndpointsMetricRelabelings"]]:
        '''
        :schema: ServiceMonitorSpecEndpoints#metricRelabelings
        '''
        result = self._values.get("metric_relabelings")
        return typing.cast(typing.Optional[typing.List["ServiceMonitorSpecEndpointsMetricRelabelings"]], result)

    @builtins.property
    def no_proxy(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpoints#noProxy
        '''
        result = self._values.get("no_proxy")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def oauth2(self) -> typing.Optional["ServiceMonitorSpecEndpointsOauth2"]:
        '''
        :schema: ServiceMonitorSpecEndpoints#oauth2
        '''
        result = self._values.get("oauth2")
        return typing.cast(typing.Optional["ServiceMonitorSpecEndpointsOauth2"], result)

    @builtins.property
    def params(
        self,
    ) -> typing.Optional[typing.Mapping[builtins.str, typing.List[builtins.str]]]:
        '''
        :schema: ServiceMonitorSpecEndpoints#params
        '''
        result = self._values.get("params")
        return typing.cast(typing.Optional[typing.Mapping[builtins.str, typing.List[builtins.str]]], result)

    @builtins.property
    def path(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpoints#path
        '''
        result = self._values.get("path")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def port(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpoints#port
        '''
        result = self._values.get("port")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def proxy_connect_header(
        self,
    ) -> typing.Optional[typing.Mapping[builtins.str, typing.List["ServiceMonitorSpecEndpointsProxyConnectHeader"]]]:
        '''
        :schema: ServiceMonitorSpecEndpoints#proxyConnectHeader
        '''
        result = self._values.get("proxy_connect_header")
        return typing.cast(typing.Optional[typing.Mapping[builtins.str, typing.List["ServiceMonitorSpecEndpointsProxyConnectHeader"]]], result)

    @builtins.property
    def proxy_from_environment(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: ServiceMonitorSpecEndpoints#proxyFromEnvironment
        '''
        result = self._values.get("proxy_from_environment")
        return typing.cast(typing.Optional[builtins.bool], result)

    @builtins.property
    def proxy_url(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpoints#proxyUrl
        '''
        result = self._values.get("proxy_url")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def relabelings(
        self,
    ) -> typing.Optional[typing.List["ServiceMonitorSpecEndpointsRelabelings"]]:
        '''
        :schema: ServiceMonitorSpecEndpoints#relabelings
        '''
        result = self._values.get("relabelings")
        return typing.cast(typing.Optional[typing.List["ServiceMonitorSpecEndpointsRelabelings"]], result)

    @builtins.property
    def scheme(self) -> typing.Optional["ServiceMonitorSpecEndpointsScheme"]:
        '''
        :schema: ServiceMonitorSpecEndpoints#scheme
        '''
        result = self._values.get("scheme")
        return typing.cast(typing.Optional["ServiceMonitorSpecEndpointsScheme"], result)

    @builtins.property
    def scrape_timeout(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpoints#scrapeTimeout
        '''
        result = self._values.get("scrape_timeout")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def target_port(self) -> typing.Optional["ServiceMonitorSpecEndpointsTargetPort"]:
        '''
        :schema: ServiceMonitorSpecEndpoints#targetPort
        '''
        result = self._values.get("target_port")
        return typing.cast(typing.Optional["ServiceMonitorSpecEndpointsTargetPort"], result)

    @builtins.property
    def tls_config(self) -> typing.Optional["ServiceMonitorSpecEndpointsTlsConfig"]:
        '''
        :schema: ServiceMonitorSpecEndpoints#tlsConfig
        '''
        result = self._values.get("tls_config")
        return typing.cast(typing.Optional["ServiceMonitorSpecEndpointsTlsConfig"], result)

    @builtins.property
    def track_timestamps_staleness(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: ServiceMonitorSpecEndpoints#trackTimestampsStaleness
        '''
        result = self._values.get("track_timestamps_staleness")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "ServiceMonitorSpecEndpoints(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpointsAuthorization",
    jsii_struct_bases=[],
    name_mapping={"credentials": "credentials", "type": "type"},
)
class ServiceMonitorSpecEndpointsAuthorization:
    def __init__(
        self,
        *,
        credentials: typing.Optional[typing.Union["ServiceMonitorSpecEndpointsAuthorizationCredentials", typing.Dict[builtins.str, typing.Any]]] = None,
        type: typing.Optional[builtins.str] = None,
    ) -> None:
        '''
        :param credentials: 
        :param type: 

        :schema: ServiceMonitorSpecEndpointsAuthorization
        '''
        if isinstance(credentials, dict):
            credentials = ServiceMonitorSpecEndpointsAuthorizationCredentials(**credentials)
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__b05be2dbf3d1f785c44186c59ea265d852bfc4c161dd2a667dfb7fb72d3fafab)
            check_type(argname="argument credentials", value=credentials, expected_type=type_hints["credentials"])
            check_type(argname="argument type", value=type, expected_type=type_hints["type"])
        self._values: typing.Dict[builtins.str, typing.Any] = {}
        if credentials is not None:
            self._values["credentials"] = credentials
        if type is not None:
            self._values["type"] = type

    @builtins.property
    def credentials(
        self,
    ) -> typing.Optional["ServiceMonitorSpecEndpointsAuthorizationCredentials"]:
        '''
        :schema: ServiceMonitorSpecEndpointsAuthorization#credentials
        '''
        result = self._values.get("credentials")
        return typing.cast(typing.Optional["ServiceMonitorSpecEndpointsAuthorizationCredentials"], result)

    @builtins.property
    def type(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpointsAuthorization#type
        '''
        result = self._values.get("type")
        return typing.cast(typing.Optional[builtins.str], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "ServiceMonitorSpecEndpointsAuthorization(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpointsAuthorizationCredentials",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "name": "name", "optional": "optional"},
)
class ServiceMonitorSpecEndpointsAuthorizationCredentials:
    def __init__(
        self,
        *,
        key: builtins.str,
        name: typing.Optional[builtins.str] = None,
        optional: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param key: 
        :param name: 
        :param optional: 

        :schema: ServiceMonitorSpecEndpointsAuthorizationCredentials
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__1c83826f5d1af77f6b472277f612d8fe893abd225721d0ad52a0b6e894c6ca91)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument name", value=name, expected_type=type_hints["name"])
            check_type(argname="argument optional", value=optional, expected_type=type_hints["optional"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
        }
        if name is not None:
            self._values["name"] = name
        if optional is not None:
            self._values["optional"] = optional

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: ServiceMonitorSpecEndpointsAuthorizationCredentials#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpointsAuthorizationCredentials#name
        '''
        result = self._values.get("name")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def optional(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: ServiceMonitorSpecEndpointsAuthorizationCredentials#optional
        '''
        result = self._values.get("optional")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "ServiceMonitorSpecEndpointsAuthorizationCredentials(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpointsBasicAuth",
    jsii_struct_bases=[],
    name_mapping={"password": "password", "username": "username"},
)
class ServiceMonitorSpecEndpointsBasicAuth:
    def __init__(
        self,
        *,
        password: typing.Optional[typing.Union["ServiceMonitorSpecEndpointsBasicAuthPassword", typing.Dict[builtins.str, typing.Any]]] = None,
        username: typing.Optional[typing.Union["ServiceMonitorSpecEndpointsBasicAuthUsername", typing.Dict[builtins.str, typing.Any]]] = None,
    ) -> None:
        '''
        :param password: 
        :param username: 

        :schema: ServiceMonitorSpecEndpointsBasicAuth
        '''
        if isinstance(password, dict):
            password = ServiceMonitorSpecEndpointsBasicAuthPassword(**password)
        if isinstance(username, dict):
            username = ServiceMonitorSpecEndpointsBasicAuthUsername(**username)
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__3bb86167c1eb1b7c3cfb101e3ccc00e531d6a4cf5db0187880449cdd1206f66d)
            check_type(argname="argument password", value=password, expected_type=type_hints["password"])
            check_type(argname="argument username", value=username, expected_type=type_hints["username"])
        self._values: typing.Dict[builtins.str, typing.Any] = {}
        if password is not None:
            self._values["password"] = password
        if username is not None:
            self._values["username"] = username

    @builtins.property
    def password(
        self,
    ) -> typing.Optional["ServiceMonitorSpecEndpointsBasicAuthPassword"]:
        '''
        :schema: ServiceMonitorSpecEndpointsBasicAuth#password
        '''
        result = self._values.get("password")
        return typing.cast(typing.Optional["ServiceMonitorSpecEndpointsBasicAuthPassword"], result)

    @builtins.property
    def username(
        self,
    ) -> typing.Optional["ServiceMonitorSpecEndpointsBasicAuthUsername"]:
        '''
        :schema: ServiceMonitorSpecEndpointsBasicAuth#username
        '''
        result = self._values.get("username")
        return typing.cast(typing.Optional["ServiceMonitorSpecEndpointsBasicAuthUsername"], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "ServiceMonitorSpecEndpointsBasicAuth(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpointsBasicAuthPassword",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "name": "name", "optional": "optional"},
)
class ServiceMonitorSpecEndpointsBasicAuthPassword:
    def __init__(
        self,
        *,
        key: builtins.str,
        name: typing.Optional[builtins.str] = None,
        optional: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param key: 
        :param name: 
        :param optional: 

        :schema: ServiceMonitorSpecEndpointsBasicAuthPassword
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__7e0aade533948af8db0e7c96e2e543426177c8f6b9848b8d7d378a3a936439ce)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument name", value=name, expected_type=type_hints["name"])
            check_type(argname="argument optional", value=optional, expected_type=type_hints["optional"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
        }
        if name is not None:
            self._values["name"] = name
        if optional is not None:
            self._values["optional"] = optional

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: ServiceMonitorSpecEndpointsBasicAuthPassword#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpointsBasicAuthPassword#name
        '''
        result = self._values.get("name")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def optional(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: ServiceMonitorSpecEndpointsBasicAuthPassword#optional
        '''
        result = self._values.get("optional")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "ServiceMonitorSpecEndpointsBasicAuthPassword(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpointsBasicAuthUsername",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "name": "name", "optional": "optional"},
)
class ServiceMonitorSpecEndpointsBasicAuthUsername:
    def __init__(
        self,
        *,
        key: builtins.str,
        name: typing.Optional[builtins.str] = None,
        optional: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param key: 
        :param name: 
        :param optional: 

        :schema: ServiceMonitorSpecEndpointsBasicAuthUsername
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__650161eb2ae5d4744ac93cdb731365c5ebf1f8ffe3eb9fa80895090d59430fc4)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument name", value=name, expected_type=type_hints["name"])
            check_type(argname="argument optional", value=optional, expected_type=type_hints["optional"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
        }
        if name is not None:
            self._values["name"] = name
        if optional is not None:
            self._values["optional"] = optional

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: ServiceMonitorSpecEndpointsBasicAuthUsername#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpointsBasicAuthUsername#name
        '''
        result = self._values.get("name")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def optional(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: ServiceMonitorSpecEndpointsBasicAuthUsername#optional
        '''
        result = self._values.get("optional")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "ServiceMonitorSpecEndpointsBasicAuthUsername(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpointsBearerTokenSecret",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "name": "name", "optional": "optional"},
)
class ServiceMonitorSpecEndpointsBearerTokenSecret:
    def __init__(
        self,
        *,
        key: builtins.str,
        name: typing.Optional[builtins.str] = None,
        optional: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param key: 
        :param name: 
        :param optional: 

        :schema: ServiceMonitorSpecEndpointsBearerTokenSecret
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__f101e1b8c5f41fb997e62c8c7f7fc1316f2176377c3a84a57a4345a28bafc76d)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument name", value=name, expected_type=type_hints["name"])
            check_type(argname="argument optional", value=optional, expected_type=type_hints["optional"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
        }
        if name is not None:
            self._values["name"] = name
        if optional is not None:
            self._values["optional"] = optional

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: ServiceMonitorSpecEndpointsBearerTokenSecret#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpointsBearerTokenSecret#name
        '''
        result = self._values.get("name")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def optional(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: ServiceMonitorSpecEndpointsBearerTokenSecret#optional
        '''
        result = self._values.get("optional")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "ServiceMonitorSpecEndpointsBearerTokenSecret(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpointsMetricRelabelings",
    jsii_struct_bases=[],
    name_mapping={
        "action": "action",
        "modulus": "modulus",
        "regex": "regex",
        "replacement": "replacement",
        "separator": "separator",
        "source_labels": "sourceLabels",
        "target_label": "targetLabel",
    },
)
class ServiceMonitorSpecEndpointsMetricRelabelings:
    def __init__(
        self,
        *,
        action: typing.Optional["ServiceMonitorSpecEndpointsMetricRelabelingsAction"] = None,
        modulus: typing.Optional[jsii.Number] = None,
        regex: typing.Optional[builtins.str] = None,
        replacement: typing.Optional[builtins.str] = None,
        separator: typing.Optional[builtins.str] = None,
        source_labels: typing.Optional[typing.Sequence[builtins.str]] = None,
        target_label: typing.Optional[builtins.str] = None,
    ) -> None:
        '''
        :param action: 
        :param modulus: 
        :param regex: 
        :param replacement: 
        :param separator: 
        :param source_labels: 
        :param target_label: 

        :schema: ServiceMonitorSpecEndpointsMetricRelabelings
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__ecdf834c71cee7105eb773035064fc34b431e349772b048e9be974173861c391)
            check_type(argname="argument action", value=action, expected_type=type_hints["action"])
            check_type(argname="argument modulus", value=modulus, expected_type=type_hints["modulus"])
            check_type(argname="argument regex", value=regex, expected_type=type_hints["regex"])
            check_type(argname="argument replacement", value=replacement, expected_type=type_hints["replacement"])
            check_type(argname="argument separator", value=separator, expected_type=type_hints["separator"])
            check_type(argname="argument source_labels", value=source_labels, expected_type=type_hints["source_labels"])
            check_type(argname="argument target_label", value=target_label, expected_type=type_hints["target_label"])
        self._values: typing.Dict[builtins.str, typing.Any] = {}
        if action is not None:
            self._values["action"] = action
        if modulus is not None:
            self._values["modulus"] = modulus
        if regex is not None:
            self._values["regex"] = regex
        if replacement is not None:
            self._values["replacement"] = replacement
        if separator is not None:
            self._values["separator"] = separator
        if source_labels is not None:
            self._values["source_labels"] = source_labels
        if target_label is not None:
            self._values["target_label"] = target_label

    @builtins.property
    def action(
        self,
    ) -> typing.Optional["ServiceMonitorSpecEndpointsMetricRelabelingsAction"]:
        '''
        :schema: ServiceMonitorSpecEndpointsMetricRelabelings#action
        '''
        result = self._values.get("action")
        return typing.cast(typing.Optional["ServiceMonitorSpecEndpointsMetricRelabelingsAction"], result)

    @builtins.property
    def modulus(self) -> typing.Optional[jsii.Number]:
        '''
        :schema: ServiceMonitorSpecEndpointsMetricRelabelings#modulus
        '''
        result = self._values.get("modulus")
        return typing.cast(typing.Optional[jsii.Number], result)

    @builtins.property
    def regex(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpointsMetricRelabelings#regex
        '''
        result = self._values.get("regex")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def replacement(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpointsMetricRelabelings#replacement
        '''
        result = self._values.get("replacement")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def separator(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpointsMetricRelabelings#separator
        '''
        result = self._values.get("separator")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def source_labels(self) -> typing.Optional[typing.List[builtins.str]]:
        '''
        :schema: ServiceMonitorSpecEndpointsMetricRelabelings#sourceLabels
        '''
        result = self._values.get("source_labels")
        return typing.cast(typing.Optional[typing.List[builtins.str]], result)

    @builtins.property
    def target_label(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpointsMetricRelabelings#targetLabel
        '''
        result = self._values.get("target_label")
        return typing.cast(typing.Optional[builtins.str], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "ServiceMonitorSpecEndpointsMetricRelabelings(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.enum(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpointsMetricRelabelingsAction"
)
class ServiceMonitorSpecEndpointsMetricRelabelingsAction(enum.Enum):
    '''
    :schema: ServiceMonitorSpecEndpointsMetricRelabelingsAction
    '''

    REPLACE = "REPLACE"
    '''replace.'''
    KEEP = "KEEP"
    '''keep.'''
    DROP = "DROP"
    '''drop.'''
    HASHMOD = "HASHMOD"
    '''hashmod.'''
    LABELMAP = "LABELMAP"
    '''labelmap.'''
    LABELDROP = "LABELDROP"
    '''labeldrop.'''
    LABELKEEP = "LABELKEEP"
    '''labelkeep.'''
    LOWERCASE = "LOWERCASE"
    '''lowercase.'''
    UPPERCASE = "UPPERCASE"
    '''uppercase.'''
    KEEPEQUAL = "KEEPEQUAL"
    '''keepequal.'''
    DROPEQUAL = "DROPEQUAL"
    '''dropequal.'''


@jsii.data_type(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpointsOauth2",
    jsii_struct_bases=[],
    name_mapping={
        "client_id": "clientId",
        "client_secret": "clientSecret",
        "token_url": "tokenUrl",
        "endpoint_params": "endpointParams",
        "no_proxy": "noProxy",
        "proxy_connect_header": "proxyConnectHeader",
        "proxy_from_environment": "proxyFromEnvironment",
        "proxy_url": "proxyUrl",
        "scopes": "scopes",
        "tls_config": "tlsConfig",
    },
)
class ServiceMonitorSpecEndpointsOauth2:
    def __init__(
        self,
        *,
        client_id: typing.Union["ServiceMonitorSpecEndpointsOauth2ClientId", typing.Dict[builtins.str, typing.Any]],
        client_secret: typing.Union["ServiceMonitorSpecEndpointsOauth2ClientSecret", typing.Dict[builtins.str, typing.Any]],
        token_url: builtins.str,
        endpoint_params: typing.Optional[typing.Mapping[builtins.str, builtins.str]] = None,
        no_proxy: typing.Optional[builtins.str] = None,
        proxy_connect_header: typing.Optional[typing.Mapping[builtins.str, typing.Sequence[typing.Union["ServiceMonitorSpecEndpointsOauth2ProxyConnectHeader", typing.Dict[builtins.str, typing.Any]]]]] = None,
        proxy_from_environment: typing.Optional[builtins.bool] = None,
        proxy_url: typing.Optional[builtins.str] = None,
        scopes: typing.Optional[typing.Sequence[builtins.str]] = None,
        tls_config: typing.Optional[typing.Union["ServiceMonitorSpecEndpointsOauth2TlsConfig", typing.Dict[builtins.str, typing.Any]]] = None,
    ) -> None:
        '''
        :param client_id: 
        :param client_secret: 
        :param token_url: 
        :param endpoint_params: 
        :param no_proxy: 
        :param proxy_connect_header: 
        :param proxy_from_environment: 
        :param proxy_url: 
        :param scopes: 
        :param tls_config: 

        :schema: ServiceMonitorSpecEndpointsOauth2
        '''
        if isinstance(client_id, dict):
            client_id = ServiceMonitorSpecEndpointsOauth2ClientId(**client_id)
        if isinstance(client_secret, dict):
            client_secret = ServiceMonitorSpecEndpointsOauth2ClientSecret(**client_secret)
        if isinstance(tls_config, dict):
            tls_config = ServiceMonitorSpecEndpointsOauth2TlsConfig(**tls_config)
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__1fbf1a17774c9325051b1afae8b5079d104a808c07e2045229b6a3d401d1fcb4)
            check_type(argname="argument client_id", value=client_id, expected_type=type_hints["client_id"])
            check_type(argname="argument client_secret", value=client_secret, expected_type=type_hints["client_secret"])
            check_type(argname="argument token_url", value=token_url, expected_type=type_hints["token_url"])
            check_type(argname="argument endpoint_params", value=endpoint_params, expected_type=type_hints["endpoint_params"])
            check_type(argname="argument no_proxy", value=no_proxy, expected_type=type_hints["no_proxy"])
            check_type(argname="argument proxy_connect_header", value=proxy_connect_header, expected_type=type_hints["proxy_connect_header"])
            check_type(argname="argument proxy_from_environment", value=proxy_from_environment, expected_type=type_hints["proxy_from_environment"])
            check_type(argname="argument proxy_url", value=proxy_url, expected_type=type_hints["proxy_url"])
            check_type(argname="argument scopes", value=scopes, expected_type=type_hints["scopes"])
            check_type(argname="argument tls_config", value=tls_config, expected_type=type_hints["tls_config"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "client_id": client_id,
            "client_secret": client_secret,
            "token_url": token_url,
        }
        if endpoint_params is not None:
            self._values["endpoint_params"] = endpoint_params
        if no_proxy is not None:
            self._values["no_proxy"] = no_proxy
        if proxy_connect_header is not None:
            self._values["proxy_connect_header"] = proxy_connect_header
        if proxy_from_environment is not None:
            self._values["proxy_from_environment"] = proxy_from_environment
        if proxy_url is not None:
            self._values["proxy_url"] = proxy_url
        if scopes is not None:
            self._values["scopes"] = scopes
        if tls_config is not None:
            self._values["tls_config"] = tls_config

    @builtins.property
    def client_id(self) -> "ServiceMonitorSpecEndpointsOauth2ClientId":
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2#clientId
        '''
        result = self._values.get("client_id")
        assert result is not None, "Required property 'client_id' is missing"
        return typing.cast("ServiceMonitorSpecEndpointsOauth2ClientId", result)

    @builtins.property
    def client_secret(self) -> "ServiceMonitorSpecEndpointsOauth2ClientSecret":
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2#clientSecret
        '''
        result = self._values.get("client_secret")
        assert result is not None, "Required property 'client_secret' is missing"
        return typing.cast("ServiceMonitorSpecEndpointsOauth2ClientSecret", result)

    @builtins.property
    def token_url(self) -> builtins.str:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2#tokenUrl
        '''
        result = self._values.get("token_url")
        assert result is not None, "Required property 'token_url' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def endpoint_params(
        self,
    ) -> typing.Optional[typing.Mapping[builtins.str, builtins.str]]:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2#endpointParams
        '''
        result = self._values.get("endpoint_params")
        return typing.cast(typing.Optional[typing.Mapping[builtins.str, builtins.str]], result)

    @builtins.property
    def no_proxy(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2#noProxy
        '''
        result = self._values.get("no_proxy")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def proxy_connect_header(
        self,
    ) -> typing.Optional[typing.Mapping[builtins.str, typing.List["ServiceMonitorSpecEndpointsOauth2ProxyConnectHeader"]]]:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2#proxyConnectHeader
        '''
        result = self._values.get("proxy_connect_header")
        return typing.cast(typing.Optional[typing.Mapping[builtins.str, typing.List["ServiceMonitorSpecEndpointsOauth2ProxyConnectHeader"]]], result)

    @builtins.property
    def proxy_from_environment(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2#proxyFromEnvironment
        '''
        result = self._values.get("proxy_from_environment")
        return typing.cast(typing.Optional[builtins.bool], result)

    @builtins.property
    def proxy_url(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2#proxyUrl
        '''
        result = self._values.get("proxy_url")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def scopes(self) -> typing.Optional[typing.List[builtins.str]]:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2#scopes
        '''
        result = self._values.get("scopes")
        return typing.cast(typing.Optional[typing.List[builtins.str]], result)

    @builtins.property
    def tls_config(
        self,
    ) -> typing.Optional["ServiceMonitorSpecEndpointsOauth2TlsConfig"]:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2#tlsConfig
        '''
        result = self._values.get("tls_config")
        return typing.cast(typing.Optional["ServiceMonitorSpecEndpointsOauth2TlsConfig"], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "ServiceMonitorSpecEndpointsOauth2(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpointsOauth2ClientId",
    jsii_struct_bases=[],
    name_mapping={"config_map": "configMap", "secret": "secret"},
)
class ServiceMonitorSpecEndpointsOauth2ClientId:
    def __init__(
        self,
        *,
        config_map: typing.Optional[typing.Union["ServiceMonitorSpecEndpointsOauth2ClientIdConfigMap", typing.Dict[builtins.str, typing.Any]]] = None,
        secret: typing.Optional[typing.Union["ServiceMonitorSpecEndpointsOauth2ClientIdSecret", typing.Dict[builtins.str, typing.Any]]] = None,
    ) -> None:
        '''
        :param config_map: 
        :param secret: 

        :schema: ServiceMonitorSpecEndpointsOauth2ClientId
        '''
        if isinstance(config_map, dict):
            config_map = ServiceMonitorSpecEndpointsOauth2ClientIdConfigMap(**config_map)
        if isinstance(secret, dict):
            secret = ServiceMonitorSpecEndpointsOauth2ClientIdSecret(**secret)
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__6b23a4d24eb9eb69c5d201cdffad8413acfa1f419c8a41a1d59e60b419084b5e)
            check_type(argname="argument config_map", value=config_map, expected_type=type_hints["config_map"])
            check_type(argname="argument secret", value=secret, expected_type=type_hints["secret"])
        self._values: typing.Dict[builtins.str, typing.Any] = {}
        if config_map is not None:
            self._values["config_map"] = config_map
        if secret is not None:
            self._values["secret"] = secret

    @builtins.property
    def config_map(
        self,
    ) -> typing.Optional["ServiceMonitorSpecEndpointsOauth2ClientIdConfigMap"]:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2ClientId#configMap
        '''
        result = self._values.get("config_map")
        return typing.cast(typing.Optional["ServiceMonitorSpecEndpointsOauth2ClientIdConfigMap"], result)

    @builtins.property
    def secret(
        self,
    ) -> typing.Optional["ServiceMonitorSpecEndpointsOauth2ClientIdSecret"]:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2ClientId#secret
        '''
        result = self._values.get("secret")
        return typing.cast(typing.Optional["ServiceMonitorSpecEndpointsOauth2ClientIdSecret"], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "ServiceMonitorSpecEndpointsOauth2ClientId(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpointsOauth2ClientIdConfigMap",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "name": "name", "optional": "optional"},
)
class ServiceMonitorSpecEndpointsOauth2ClientIdConfigMap:
    def __init__(
        self,
        *,
        key: builtins.str,
        name: typing.Optional[builtins.str] = None,
        optional: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param key: 
        :param name: 
        :param optional: 

        :schema: ServiceMonitorSpecEndpointsOauth2ClientIdConfigMap
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__ec94d0b7ad6b1d19e33b596d14da05ba8a4e7ca4ca951dc592d31e9d25189676)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument name", value=name, expected_type=type_hints["name"])
            check_type(argname="argument optional", value=optional, expected_type=type_hints["optional"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
        }
        if name is not None:
            self._values["name"] = name
        if optional is not None:
            self._values["optional"] = optional

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2ClientIdConfigMap#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2ClientIdConfigMap#name
        '''
        result = self._values.get("name")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def optional(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2ClientIdConfigMap#optional
        '''
        result = self._values.get("optional")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "ServiceMonitorSpecEndpointsOauth2ClientIdConfigMap(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpointsOauth2ClientIdSecret",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "name": "name", "optional": "optional"},
)
class ServiceMonitorSpecEndpointsOauth2ClientIdSecret:
    def __init__(
        self,
        *,
        key: builtins.str,
        name: typing.Optional[builtins.str] = None,
        optional: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param key: 
        :param name: 
        :param optional: 

        :schema: ServiceMonitorSpecEndpointsOauth2ClientIdSecret
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__87adb09a12da5a2e30ed878fc51cb100bb3d1390ff6aaef2644476c51f4cff23)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument name", value=name, expected_type=type_hints["name"])
            check_type(argname="argument optional", value=optional, expected_type=type_hints["optional"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
        }
        if name is not None:
            self._values["name"] = name
        if optional is not None:
            self._values["optional"] = optional

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2ClientIdSecret#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2ClientIdSecret#name
        '''
        result = self._values.get("name")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def optional(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2ClientIdSecret#optional
        '''
        result = self._values.get("optional")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "ServiceMonitorSpecEndpointsOauth2ClientIdSecret(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpointsOauth2ClientSecret",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "name": "name", "optional": "optional"},
)
class ServiceMonitorSpecEndpointsOauth2ClientSecret:
    def __init__(
        self,
        *,
        key: builtins.str,
        name: typing.Optional[builtins.str] = None,
        optional: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param key: 
        :param name: 
        :param optional: 

        :schema: ServiceMonitorSpecEndpointsOauth2ClientSecret
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__d2a5f493304f38e2b06749204c2233f60863fb580f98104b324a73426c3f8810)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument name", value=name, expected_type=type_hints["name"])
            check_type(argname="argument optional", value=optional, expected_type=type_hints["optional"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
        }
        if name is not None:
            self._values["name"] = name
        if optional is not None:
            self._values["optional"] = optional

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2ClientSecret#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2ClientSecret#name
        '''
        result = self._values.get("name")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def optional(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2ClientSecret#optional
        '''
        result = self._values.get("optional")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "ServiceMonitorSpecEndpointsOauth2ClientSecret(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpointsOauth2ProxyConnectHeader",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "name": "name", "optional": "optional"},
)
class ServiceMonitorSpecEndpointsOauth2ProxyConnectHeader:
    def __init__(
        self,
        *,
        key: builtins.str,
        name: typing.Optional[builtins.str] = None,
        optional: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param key: 
        :param name: 
        :param optional: 

        :schema: ServiceMonitorSpecEndpointsOauth2ProxyConnectHeader
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__baf4e3c0471ec4b2fa1df354aa463cd2af1209915d5b9f06f34ca01eaa858a81)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument name", value=name, expected_type=type_hints["name"])
            check_type(argname="argument optional", value=optional, expected_type=type_hints["optional"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
        }
        if name is not None:
            self._values["name"] = name
        if optional is not None:
            self._values["optional"] = optional

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2ProxyConnectHeader#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2ProxyConnectHeader#name
        '''
        result = self._values.get("name")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def optional(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2ProxyConnectHeader#optional
        '''
        result = self._values.get("optional")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "ServiceMonitorSpecEndpointsOauth2ProxyConnectHeader(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpointsOauth2TlsConfig",
    jsii_struct_bases=[],
    name_mapping={
        "ca": "ca",
        "cert": "cert",
        "insecure_skip_verify": "insecureSkipVerify",
        "key_secret": "keySecret",
        "max_version": "maxVersion",
        "min_version": "minVersion",
        "server_name": "serverName",
    },
)
class ServiceMonitorSpecEndpointsOauth2TlsConfig:
    def __init__(
        self,
        *,
        ca: typing.Optional[typing.Union["ServiceMonitorSpecEndpointsOauth2TlsConfigCa", typing.Dict[builtins.str, typing.Any]]] = None,
        cert: typing.Optional[typing.Union["ServiceMonitorSpecEndpointsOauth2TlsConfigCert", typing.Dict[builtins.str, typing.Any]]] = None,
        insecure_skip_verify: typing.Optional[builtins.bool] = None,
        key_secret: typing.Optional[typing.Union["ServiceMonitorSpecEndpointsOauth2TlsConfigKeySecret", typing.Dict[builtins.str, typing.Any]]] = None,
        max_version: typing.Optional["ServiceMonitorSpecEndpointsOauth2TlsConfigMaxVersion"] = None,
        min_version: typing.Optional["ServiceMonitorSpecEndpointsOauth2TlsConfigMinVersion"] = None,
        server_name: typing.Optional[builtins.str] = None,
    ) -> None:
        '''
        :param ca: 
        :param cert: 
        :param insecure_skip_verify: 
        :param key_secret: 
        :param max_version: 
        :param min_version: 
        :param server_name: 

        :schema: ServiceMonitorSpecEndpointsOauth2TlsConfig
        '''
        if isinstance(ca, dict):
            ca = ServiceMonitorSpecEndpointsOauth2TlsConfigCa(**ca)
        if isinstance(cert, dict):
            cert = ServiceMonitorSpecEndpointsOauth2TlsConfigCert(**cert)
        if isinstance(key_secret, dict):
            key_secret = ServiceMonitorSpecEndpointsOauth2TlsConfigKeySecret(**key_secret)
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__b35255ec2174c1336ffa23c2397f9d9d5733e2b716f7665ed12ca6cf9db5028a)
            check_type(argname="argument ca", value=ca, expected_type=type_hints["ca"])
            check_type(argname="argument cert", value=cert, expected_type=type_hints["cert"])
            check_type(argname="argument insecure_skip_verify", value=insecure_skip_verify, expected_type=type_hints["insecure_skip_verify"])
            check_type(argname="argument key_secret", value=key_secret, expected_type=type_hints["key_secret"])
            check_type(argname="argument max_version", value=max_version, expected_type=type_hints["max_version"])
            check_type(argname="argument min_version", value=min_version, expected_type=type_hints["min_version"])
            check_type(argname="argument server_name", value=server_name, expected_type=type_hints["server_name"])
        self._values: typing.Dict[builtins.str, typing.Any] = {}
        if ca is not None:
            self._values["ca"] = ca
        if cert is not None:
            self._values["cert"] = cert
        if insecure_skip_verify is not None:
            self._values["insecure_skip_verify"] = insecure_skip_verify
        if key_secret is not None:
            self._values["key_secret"] = key_secret
        if max_version is not None:
            self._values["max_version"] = max_version
        if min_version is not None:
            self._values["min_version"] = min_version
        if server_name is not None:
            self._values["server_name"] = server_name

    @builtins.property
    def ca(self) -> typing.Optional["ServiceMonitorSpecEndpointsOauth2TlsConfigCa"]:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2TlsConfig#ca
        '''
        result = self._values.get("ca")
        return typing.cast(typing.Optional["ServiceMonitorSpecEndpointsOauth2TlsConfigCa"], result)

    @builtins.property
    def cert(self) -> typing.Optional["ServiceMonitorSpecEndpointsOauth2TlsConfigCert"]:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2TlsConfig#cert
        '''
        result = self._values.get("cert")
        return typing.cast(typing.Optional["ServiceMonitorSpecEndpointsOauth2TlsConfigCert"], result)

    @builtins.property
    def insecure_skip_verify(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2TlsConfig#insecureSkipVerify
        '''
        result = self._values.get("insecure_skip_verify")
        return typing.cast(typing.Optional[builtins.bool], result)

    @builtins.property
    def key_secret(
        self,
    ) -> typing.Optional["ServiceMonitorSpecEndpointsOauth2TlsConfigKeySecret"]:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2TlsConfig#keySecret
        '''
        result = self._values.get("key_secret")
        return typing.cast(typing.Optional["ServiceMonitorSpecEndpointsOauth2TlsConfigKeySecret"], result)

    @builtins.property
    def max_version(
        self,
    ) -> typing.Optional["ServiceMonitorSpecEndpointsOauth2TlsConfigMaxVersion"]:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2TlsConfig#maxVersion
        '''
        result = self._values.get("max_version")
        return typing.cast(typing.Optional["ServiceMonitorSpecEndpointsOauth2TlsConfigMaxVersion"], result)

    @builtins.property
    def min_version(
        self,
    ) -> typing.Optional["ServiceMonitorSpecEndpointsOauth2TlsConfigMinVersion"]:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2TlsConfig#minVersion
        '''
        result = self._values.get("min_version")
        return typing.cast(typing.Optional["ServiceMonitorSpecEndpointsOauth2TlsConfigMinVersion"], result)

    @builtins.property
    def server_name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2TlsConfig#serverName
        '''
        result = self._values.get("server_name")
        return typing.cast(typing.Optional[builtins.str], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "ServiceMonitorSpecEndpointsOauth2TlsConfig(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpointsOauth2TlsConfigCa",
    jsii_struct_bases=[],
    name_mapping={"config_map": "configMap", "secret": "secret"},
)
class ServiceMonitorSpecEndpointsOauth2TlsConfigCa:
    def __init__(
        self,
        *,
        config_map: typing.Optional[typing.Union["ServiceMonitorSpecEndpointsOauth2TlsConfigCaConfigMap", typing.Dict[builtins.str, typing.Any]]] = None,
        secret: typing.Optional[typing.Union["ServiceMonitorSpecEndpointsOauth2TlsConfigCaSecret", typing.Dict[builtins.str, typing.Any]]] = None,
    ) -> None:
        '''
        :param config_map: 
        :param secret: 

        :schema: ServiceMonitorSpecEndpointsOauth2TlsConfigCa
        '''
        if isinstance(config_map, dict):
            config_map = ServiceMonitorSpecEndpointsOauth2TlsConfigCaConfigMap(**config_map)
        if isinstance(secret, dict):
            secret = ServiceMonitorSpecEndpointsOauth2TlsConfigCaSecret(**secret)
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__af2c136274b4b750305604f68d84680e2b4345fa24e6183a508408d0e145c5b9)
            check_type(argname="argument config_map", value=config_map, expected_type=type_hints["config_map"])
            check_type(argname="argument secret", value=secret, expected_type=type_hints["secret"])
        self._values: typing.Dict[builtins.str, typing.Any] = {}
        if config_map is not None:
            self._values["config_map"] = config_map
        if secret is not None:
            self._values["secret"] = secret

    @builtins.property
    def config_map(
        self,
    ) -> typing.Optional["ServiceMonitorSpecEndpointsOauth2TlsConfigCaConfigMap"]:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2TlsConfigCa#configMap
        '''
        result = self._values.get("config_map")
        return typing.cast(typing.Optional["ServiceMonitorSpecEndpointsOauth2TlsConfigCaConfigMap"], result)

    @builtins.property
    def secret(
        self,
    ) -> typing.Optional["ServiceMonitorSpecEndpointsOauth2TlsConfigCaSecret"]:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2TlsConfigCa#secret
        '''
        result = self._values.get("secret")
        return typing.cast(typing.Optional["ServiceMonitorSpecEndpointsOauth2TlsConfigCaSecret"], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "ServiceMonitorSpecEndpointsOauth2TlsConfigCa(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpointsOauth2TlsConfigCaConfigMap",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "name": "name", "optional": "optional"},
)
class ServiceMonitorSpecEndpointsOauth2TlsConfigCaConfigMap:
    def __init__(
        self,
        *,
        key: builtins.str,
        name: typing.Optional[builtins.str] = None,
        optional: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param key: 
        :param name: 
        :param optional: 

        :schema: ServiceMonitorSpecEndpointsOauth2TlsConfigCaConfigMap
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__4f733ecb9c6c03b0398a6edd3ff1d2c19f707c22fd2788dd5278e1855aa2bdf3)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument name", value=name, expected_type=type_hints["name"])
            check_type(argname="argument optional", value=optional, expected_type=type_hints["optional"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
        }
        if name is not None:
            self._values["name"] = name
        if optional is not None:
            self._values["optional"] = optional

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2TlsConfigCaConfigMap#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2TlsConfigCaConfigMap#name
        '''
        result = self._values.get("name")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def optional(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2TlsConfigCaConfigMap#optional
        '''
        result = self._values.get("optional")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "ServiceMonitorSpecEndpointsOauth2TlsConfigCaConfigMap(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpointsOauth2TlsConfigCaSecret",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "name": "name", "optional": "optional"},
)
class ServiceMonitorSpecEndpointsOauth2TlsConfigCaSecret:
    def __init__(
        self,
        *,
        key: builtins.str,
        name: typing.Optional[builtins.str] = None,
        optional: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param key: 
        :param name: 
        :param optional: 

        :schema: ServiceMonitorSpecEndpointsOauth2TlsConfigCaSecret
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__85a4161d0987c009764d17cdf094ee8aea681edf01066684b6ca4493c317fab8)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument name", value=name, expected_type=type_hints["name"])
            check_type(argname="argument optional", value=optional, expected_type=type_hints["optional"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
        }
        if name is not None:
            self._values["name"] = name
        if optional is not None:
            self._values["optional"] = optional

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2TlsConfigCaSecret#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2TlsConfigCaSecret#name
        '''
        result = self._values.get("name")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def optional(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2TlsConfigCaSecret#optional
        '''
        result = self._values.get("optional")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "ServiceMonitorSpecEndpointsOauth2TlsConfigCaSecret(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpointsOauth2TlsConfigCert",
    jsii_struct_bases=[],
    name_mapping={"config_map": "configMap", "secret": "secret"},
)
class ServiceMonitorSpecEndpointsOauth2TlsConfigCert:
    def __init__(
        self,
        *,
        config_map: typing.Optional[typing.Union["ServiceMonitorSpecEndpointsOauth2TlsConfigCertConfigMap", typing.Dict[builtins.str, typing.Any]]] = None,
        secret: typing.Optional[typing.Union["ServiceMonitorSpecEndpointsOauth2TlsConfigCertSecret", typing.Dict[builtins.str, typing.Any]]] = None,
    ) -> None:
        '''
        :param config_map: 
        :param secret: 

        :schema: ServiceMonitorSpecEndpointsOauth2TlsConfigCert
        '''
        if isinstance(config_map, dict):
            config_map = ServiceMonitorSpecEndpointsOauth2TlsConfigCertConfigMap(**config_map)
        if isinstance(secret, dict):
            secret = ServiceMonitorSpecEndpointsOauth2TlsConfigCertSecret(**secret)
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__3c4b20159d0c3a83579d22cb1a045729b923731d6b68744bba82d6398f242b4a)
            check_type(argname="argument config_map", value=config_map, expected_type=type_hints["config_map"])
            check_type(argname="argument secret", value=secret, expected_type=type_hints["secret"])
        self._values: typing.Dict[builtins.str, typing.Any] = {}
        if config_map is not None:
            self._values["config_map"] = config_map
        if secret is not None:
            self._values["secret"] = secret

    @builtins.property
    def config_map(
        self,
    ) -> typing.Optional["ServiceMonitorSpecEndpointsOauth2TlsConfigCertConfigMap"]:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2TlsConfigCert#configMap
        '''
        result = self._values.get("config_map")
        return typing.cast(typing.Optional["ServiceMonitorSpecEndpointsOauth2TlsConfigCertConfigMap"], result)

    @builtins.property
    def secret(
        self,
    ) -> typing.Optional["ServiceMonitorSpecEndpointsOauth2TlsConfigCertSecret"]:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2TlsConfigCert#secret
        '''
        result = self._values.get("secret")
        return typing.cast(typing.Optional["ServiceMonitorSpecEndpointsOauth2TlsConfigCertSecret"], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "ServiceMonitorSpecEndpointsOauth2TlsConfigCert(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpointsOauth2TlsConfigCertConfigMap",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "name": "name", "optional": "optional"},
)
class ServiceMonitorSpecEndpointsOauth2TlsConfigCertConfigMap:
    def __init__(
        self,
        *,
        key: builtins.str,
        name: typing.Optional[builtins.str] = None,
        optional: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param key: 
        :param name: 
        :param optional: 

        :schema: ServiceMonitorSpecEndpointsOauth2TlsConfigCertConfigMap
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__c6be5496dd49fe73795f886d2da410ab862f79a58637f6604655dfdcd0a87703)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument name", value=name, expected_type=type_hints["name"])
            check_type(argname="argument optional", value=optional, expected_type=type_hints["optional"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
        }
        if name is not None:
            self._values["name"] = name
        if optional is not None:
            self._values["optional"] = optional

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2TlsConfigCertConfigMap#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2TlsConfigCertConfigMap#name
        '''
        result = self._values.get("name")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def optional(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2TlsConfigCertConfigMap#optional
        '''
        result = self._values.get("optional")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "ServiceMonitorSpecEndpointsOauth2TlsConfigCertConfigMap(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpointsOauth2TlsConfigCertSecret",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "name": "name", "optional": "optional"},
)
class ServiceMonitorSpecEndpointsOauth2TlsConfigCertSecret:
    def __init__(
        self,
        *,
        key: builtins.str,
        name: typing.Optional[builtins.str] = None,
        optional: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param key: 
        :param name: 
        :param optional: 

        :schema: ServiceMonitorSpecEndpointsOauth2TlsConfigCertSecret
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__9504701e5b5dfe1c5cb53e5d92098578be7ce6189cb6b716e3bea0dd87b261b8)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument name", value=name, expected_type=type_hints["name"])
            check_type(argname="argument optional", value=optional, expected_type=type_hints["optional"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
        }
        if name is not None:
            self._values["name"] = name
        if optional is not None:
            self._values["optional"] = optional

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2TlsConfigCertSecret#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2TlsConfigCertSecret#name
        '''
        result = self._values.get("name")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def optional(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2TlsConfigCertSecret#optional
        '''
        result = self._values.get("optional")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "ServiceMonitorSpecEndpointsOauth2TlsConfigCertSecret(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpointsOauth2TlsConfigKeySecret",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "name": "name", "optional": "optional"},
)
class ServiceMonitorSpecEndpointsOauth2TlsConfigKeySecret:
    def __init__(
        self,
        *,
        key: builtins.str,
        name: typing.Optional[builtins.str] = None,
        optional: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param key: 
        :param name: 
        :param optional: 

        :schema: ServiceMonitorSpecEndpointsOauth2TlsConfigKeySecret
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__232c1b4dee109c8cbd78169e29345510e84988dd19ac3da3b776d00e4f8b9052)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument name", value=name, expected_type=type_hints["name"])
            check_type(argname="argument optional", value=optional, expected_type=type_hints["optional"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
        }
        if name is not None:
            self._values["name"] = name
        if optional is not None:
            self._values["optional"] = optional

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2TlsConfigKeySecret#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2TlsConfigKeySecret#name
        '''
        result = self._values.get("name")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def optional(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: ServiceMonitorSpecEndpointsOauth2TlsConfigKeySecret#optional
        '''
        result = self._values.get("optional")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "ServiceMonitorSpecEndpointsOauth2TlsConfigKeySecret(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.enum(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpointsOauth2TlsConfigMaxVersion"
)
class ServiceMonitorSpecEndpointsOauth2TlsConfigMaxVersion(enum.Enum):
    '''
    :schema: ServiceMonitorSpecEndpointsOauth2TlsConfigMaxVersion
    '''

    TLS10 = "TLS10"
    '''TLS10.'''
    TLS11 = "TLS11"
    '''TLS11.'''
    TLS12 = "TLS12"
    '''TLS12.'''
    TLS13 = "TLS13"
    '''TLS13.'''


@jsii.enum(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpointsOauth2TlsConfigMinVersion"
)
class ServiceMonitorSpecEndpointsOauth2TlsConfigMinVersion(enum.Enum):
    '''
    :schema: ServiceMonitorSpecEndpointsOauth2TlsConfigMinVersion
    '''

    TLS10 = "TLS10"
    '''TLS10.'''
    TLS11 = "TLS11"
    '''TLS11.'''
    TLS12 = "TLS12"
    '''TLS12.'''
    TLS13 = "TLS13"
    '''TLS13.'''


@jsii.data_type(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpointsProxyConnectHeader",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "name": "name", "optional": "optional"},
)
class ServiceMonitorSpecEndpointsProxyConnectHeader:
    def __init__(
        self,
        *,
        key: builtins.str,
        name: typing.Optional[builtins.str] = None,
        optional: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param key: 
        :param name: 
        :param optional: 

        :schema: ServiceMonitorSpecEndpointsProxyConnectHeader
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__af7ff9bf850f6229a5a446f1891c3694482531b8efb09e8e46753a797a87f74f)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument name", value=name, expected_type=type_hints["name"])
            check_type(argname="argument optional", value=optional, expected_type=type_hints["optional"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
        }
        if name is not None:
            self._values["name"] = name
        if optional is not None:
            self._values["optional"] = optional

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: ServiceMonitorSpecEndpointsProxyConnectHeader#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpointsProxyConnectHeader#name
        '''
        result = self._values.get("name")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def optional(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: ServiceMonitorSpecEndpointsProxyConnectHeader#optional
        '''
        result = self._values.get("optional")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "ServiceMonitorSpecEndpointsProxyConnectHeader(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpointsRelabelings",
    jsii_struct_bases=[],
    name_mapping={
        "action": "action",
        "modulus": "modulus",
        "regex": "regex",
        "replacement": "replacement",
        "separator": "separator",
        "source_labels": "sourceLabels",
        "target_label": "targetLabel",
    },
)
class ServiceMonitorSpecEndpointsRelabelings:
    def __init__(
        self,
        *,
        action: typing.Optional["ServiceMonitorSpecEndpointsRelabelingsAction"] = None,
        modulus: typing.Optional[jsii.Number] = None,
        regex: typing.Optional[builtins.str] = None,
        replacement: typing.Optional[builtins.str] = None,
        separator: typing.Optional[builtins.str] = None,
        source_labels: typing.Optional[typing.Sequence[builtins.str]] = None,
        target_label: typing.Optional[builtins.str] = None,
    ) -> None:
        '''
        :param action: 
        :param modulus: 
        :param regex: 
        :param replacement: 
        :param separator: 
        :param source_labels: 
        :param target_label: 

        :schema: ServiceMonitorSpecEndpointsRelabelings
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__2635c776631324d4d88ad60676fe0b6bf4e435f64f67f6bd98c0af6e1a54b3d7)
            check_type(argname="argument action", value=action, expected_type=type_hints["action"])
            check_type(argname="argument modulus", value=modulus, expected_type=type_hints["modulus"])
            check_type(argname="argument regex", value=regex, expected_type=type_hints["regex"])
            check_type(argname="argument replacement", value=replacement, expected_type=type_hints["replacement"])
            check_type(argname="argument separator", value=separator, expected_type=type_hints["separator"])
            check_type(argname="argument source_labels", value=source_labels, expected_type=type_hints["source_labels"])
            check_type(argname="argument target_label", value=target_label, expected_type=type_hints["target_label"])
        self._values: typing.Dict[builtins.str, typing.Any] = {}
        if action is not None:
            self._values["action"] = action
        if modulus is not None:
            self._values["modulus"] = modulus
        if regex is not None:
            self._values["regex"] = regex
        if replacement is not None:
            self._values["replacement"] = replacement
        if separator is not None:
            self._values["separator"] = separator
        if source_labels is not None:
            self._values["source_labels"] = source_labels
        if target_label is not None:
            self._values["target_label"] = target_label

    @builtins.property
    def action(self) -> typing.Optional["ServiceMonitorSpecEndpointsRelabelingsAction"]:
        '''
        :schema: ServiceMonitorSpecEndpointsRelabelings#action
        '''
        result = self._values.get("action")
        return typing.cast(typing.Optional["ServiceMonitorSpecEndpointsRelabelingsAction"], result)

    @builtins.property
    def modulus(self) -> typing.Optional[jsii.Number]:
        '''
        :schema: ServiceMonitorSpecEndpointsRelabelings#modulus
        '''
        result = self._values.get("modulus")
        return typing.cast(typing.Optional[jsii.Number], result)

    @builtins.property
    def regex(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpointsRelabelings#regex
        '''
        result = self._values.get("regex")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def replacement(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpointsRelabelings#replacement
        '''
        result = self._values.get("replacement")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def separator(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpointsRelabelings#separator
        '''
        result = self._values.get("separator")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def source_labels(self) -> typing.Optional[typing.List[builtins.str]]:
        '''
        :schema: ServiceMonitorSpecEndpointsRelabelings#sourceLabels
        '''
        result = self._values.get("source_labels")
        return typing.cast(typing.Optional[typing.List[builtins.str]], result)

    @builtins.property
    def target_label(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpointsRelabelings#targetLabel
        '''
        result = self._values.get("target_label")
        return typing.cast(typing.Optional[builtins.str], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "ServiceMonitorSpecEndpointsRelabelings(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.enum(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpointsRelabelingsAction"
)
class ServiceMonitorSpecEndpointsRelabelingsAction(enum.Enum):
    '''
    :schema: ServiceMonitorSpecEndpointsRelabelingsAction
    '''

    REPLACE = "REPLACE"
    '''replace.'''
    KEEP = "KEEP"
    '''keep.'''
    DROP = "DROP"
    '''drop.'''
    HASHMOD = "HASHMOD"
    '''hashmod.'''
    LABELMAP = "LABELMAP"
    '''labelmap.'''
    LABELDROP = "LABELDROP"
    '''labeldrop.'''
    LABELKEEP = "LABELKEEP"
    '''labelkeep.'''
    LOWERCASE = "LOWERCASE"
    '''lowercase.'''
    UPPERCASE = "UPPERCASE"
    '''uppercase.'''
    KEEPEQUAL = "KEEPEQUAL"
    '''keepequal.'''
    DROPEQUAL = "DROPEQUAL"
    '''dropequal.'''


@jsii.enum(jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpointsScheme")
class ServiceMonitorSpecEndpointsScheme(enum.Enum):
    '''
    :schema: ServiceMonitorSpecEndpointsScheme
    '''

    HTTP = "HTTP"
    '''http.'''
    HTTPS = "HTTPS"
    '''https.'''


class ServiceMonitorSpecEndpointsTargetPort(
    metaclass=jsii.JSIIMeta,
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpointsTargetPort",
):
    '''
    :schema: ServiceMonitorSpecEndpointsTargetPort
    '''

    @jsii.member(jsii_name="fromNumber")
    @builtins.classmethod
    def from_number(cls, value: jsii.Number) -> "ServiceMonitorSpecEndpointsTargetPort":
        '''
        :param value: -
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__921466a7217a2e8c0331771b9a8e0d0eae5bcaaf21ce66143ab70c1574377ef4)
            check_type(argname="argument value", value=value, expected_type=type_hints["value"])
        return typing.cast("ServiceMonitorSpecEndpointsTargetPort", jsii.sinvoke(cls, "fromNumber", [value]))

    @jsii.member(jsii_name="fromString")
    @builtins.classmethod
    def from_string(
        cls,
        value: builtins.str,
    ) -> "ServiceMonitorSpecEndpointsTargetPort":
        '''
        :param value: -
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__637b86ffabdc810a999e12c8ef0d4865b9dcb222e2b33b3127f2d5d298cb04fa)
            check_type(argname="argument value", value=value, expected_type=type_hints["value"])
        return typing.cast("ServiceMonitorSpecEndpointsTargetPort", jsii.sinvoke(cls, "fromString", [value]))

    @builtins.property
    @jsii.member(jsii_name="value")
    def value(self) -> typing.Union[builtins.str, jsii.Number]:
        return typing.cast(typing.Union[builtins.str, jsii.Number], jsii.get(self, "value"))


@jsii.data_type(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpointsTlsConfig",
    jsii_struct_bases=[],
    name_mapping={
        "ca": "ca",
        "ca_file": "caFile",
        "cert": "cert",
        "cert_file": "certFile",
        "insecure_skip_verify": "insecureSkipVerify",
        "key_file": "keyFile",
        "key_secret": "keySecret",
        "max_version": "maxVersion",
        "min_version": "minVersion",
        "server_name": "serverName",
    },
)
class ServiceMonitorSpecEndpointsTlsConfig:
    def __init__(
        self,
        *,
        ca: typing.Optional[typing.Union["ServiceMonitorSpecEndpointsTlsConfigCa", typing.Dict[builtins.str, typing.Any]]] = None,
        ca_file: typing.Optional[builtins.str] = None,
        cert: typing.Optional[typing.Union["ServiceMonitorSpecEndpointsTlsConfigCert", typing.Dict[builtins.str, typing.Any]]] = None,
        cert_file: typing.Optional[builtins.str] = None,
        insecure_skip_verify: typing.Optional[builtins.bool] = None,
        key_file: typing.Optional[builtins.str] = None,
        key_secret: typing.Optional[typing.Union["ServiceMonitorSpecEndpointsTlsConfigKeySecret", typing.Dict[builtins.str, typing.Any]]] = None,
        max_version: typing.Optional["ServiceMonitorSpecEndpointsTlsConfigMaxVersion"] = None,
        min_version: typing.Optional["ServiceMonitorSpecEndpointsTlsConfigMinVersion"] = None,
        server_name: typing.Optional[builtins.str] = None,
    ) -> None:
        '''
        :param ca: 
        :param ca_file: 
        :param cert: 
        :param cert_file: 
        :param insecure_skip_verify: 
        :param key_file: 
        :param key_secret: 
        :param max_version: 
        :param min_version: 
        :param server_name: 

        :schema: ServiceMonitorSpecEndpointsTlsConfig
        '''
        if isinstance(ca, dict):
            ca = ServiceMonitorSpecEndpointsTlsConfigCa(**ca)
        if isinstance(cert, dict):
            cert = ServiceMonitorSpecEndpointsTlsConfigCert(**cert)
        if isinstance(key_secret, dict):
            key_secret = ServiceMonitorSpecEndpointsTlsConfigKeySecret(**key_secret)
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__b3f61ccd8cbac6223a039c16101703c8606ce1f842334d316300d980bb74ee2d)
            check_type(argname="argument ca", value=ca, expected_type=type_hints["ca"])
            check_type(argname="argument ca_file", value=ca_file, expected_type=type_hints["ca_file"])
            check_type(argname="argument cert", value=cert, expected_type=type_hints["cert"])
            check_type(argname="argument cert_file", value=cert_file, expected_type=type_hints["cert_file"])
            check_type(argname="argument insecure_skip_verify", value=insecure_skip_verify, expected_type=type_hints["insecure_skip_verify"])
            check_type(argname="argument key_file", value=key_file, expected_type=type_hints["key_file"])
            check_type(argname="argument key_secret", value=key_secret, expected_type=type_hints["key_secret"])
            check_type(argname="argument max_version", value=max_version, expected_type=type_hints["max_version"])
            check_type(argname="argument min_version", value=min_version, expected_type=type_hints["min_version"])
            check_type(argname="argument server_name", value=server_name, expected_type=type_hints["server_name"])
        self._values: typing.Dict[builtins.str, typing.Any] = {}
        if ca is not None:
            self._values["ca"] = ca
        if ca_file is not None:
            self._values["ca_file"] = ca_file
        if cert is not None:
            self._values["cert"] = cert
        if cert_file is not None:
            self._values["cert_file"] = cert_file
        if insecure_skip_verify is not None:
            self._values["insecure_skip_verify"] = insecure_skip_verify
        if key_file is not None:
            self._values["key_file"] = key_file
        if key_secret is not None:
            self._values["key_secret"] = key_secret
        if max_version is not None:
            self._values["max_version"] = max_version
        if min_version is not None:
            self._values["min_version"] = min_version
        if server_name is not None:
            self._values["server_name"] = server_name

    @builtins.property
    def ca(self) -> typing.Optional["ServiceMonitorSpecEndpointsTlsConfigCa"]:
        '''
        :schema: ServiceMonitorSpecEndpointsTlsConfig#ca
        '''
        result = self._values.get("ca")
        return typing.cast(typing.Optional["ServiceMonitorSpecEndpointsTlsConfigCa"], result)

    @builtins.property
    def ca_file(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpointsTlsConfig#caFile
        '''
        result = self._values.get("ca_file")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def cert(self) -> typing.Optional["ServiceMonitorSpecEndpointsTlsConfigCert"]:
        '''
        :schema: ServiceMonitorSpecEndpointsTlsConfig#cert
        '''
        result = self._values.get("cert")
        return typing.cast(typing.Optional["ServiceMonitorSpecEndpointsTlsConfigCert"], result)

    @builtins.property
    def cert_file(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpointsTlsConfig#certFile
        '''
        result = self._values.get("cert_file")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def insecure_skip_verify(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: ServiceMonitorSpecEndpointsTlsConfig#insecureSkipVerify
        '''
        result = self._values.get("insecure_skip_verify")
        return typing.cast(typing.Optional[builtins.bool], result)

    @builtins.property
    def key_file(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpointsTlsConfig#keyFile
        '''
        result = self._values.get("key_file")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def key_secret(
        self,
    ) -> typing.Optional["ServiceMonitorSpecEndpointsTlsConfigKeySecret"]:
        '''
        :schema: ServiceMonitorSpecEndpointsTlsConfig#keySecret
        '''
        result = self._values.get("key_secret")
        return typing.cast(typing.Optional["ServiceMonitorSpecEndpointsTlsConfigKeySecret"], result)

    @builtins.property
    def max_version(
        self,
    ) -> typing.Optional["ServiceMonitorSpecEndpointsTlsConfigMaxVersion"]:
        '''
        :schema: ServiceMonitorSpecEndpointsTlsConfig#maxVersion
        '''
        result = self._values.get("max_version")
        return typing.cast(typing.Optional["ServiceMonitorSpecEndpointsTlsConfigMaxVersion"], result)

    @builtins.property
    def min_version(
        self,
    ) -> typing.Optional["ServiceMonitorSpecEndpointsTlsConfigMinVersion"]:
        '''
        :schema: ServiceMonitorSpecEndpointsTlsConfig#minVersion
        '''
        result = self._values.get("min_version")
        return typing.cast(typing.Optional["ServiceMonitorSpecEndpointsTlsConfigMinVersion"], result)

    @builtins.property
    def server_name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpointsTlsConfig#serverName
        '''
        result = self._values.get("server_name")
        return typing.cast(typing.Optional[builtins.str], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "ServiceMonitorSpecEndpointsTlsConfig(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpointsTlsConfigCa",
    jsii_struct_bases=[],
    name_mapping={"config_map": "configMap", "secret": "secret"},
)
class ServiceMonitorSpecEndpointsTlsConfigCa:
    def __init__(
        self,
        *,
        config_map: typing.Optional[typing.Union["ServiceMonitorSpecEndpointsTlsConfigCaConfigMap", typing.Dict[builtins.str, typing.Any]]] = None,
        secret: typing.Optional[typing.Union["ServiceMonitorSpecEndpointsTlsConfigCaSecret", typing.Dict[builtins.str, typing.Any]]] = None,
    ) -> None:
        '''
        :param config_map: 
        :param secret: 

        :schema: ServiceMonitorSpecEndpointsTlsConfigCa
        '''
        if isinstance(config_map, dict):
            config_map = ServiceMonitorSpecEndpointsTlsConfigCaConfigMap(**config_map)
        if isinstance(secret, dict):
            secret = ServiceMonitorSpecEndpointsTlsConfigCaSecret(**secret)
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__bd0e3bda2c9cf9f5c7ebe493483bb7890dd7b12e129f323712b0d1b5bcf35c6b)
            check_type(argname="argument config_map", value=config_map, expected_type=type_hints["config_map"])
            check_type(argname="argument secret", value=secret, expected_type=type_hints["secret"])
        self._values: typing.Dict[builtins.str, typing.Any] = {}
        if config_map is not None:
            self._values["config_map"] = config_map
        if secret is not None:
            self._values["secret"] = secret

    @builtins.property
    def config_map(
        self,
    ) -> typing.Optional["ServiceMonitorSpecEndpointsTlsConfigCaConfigMap"]:
        '''
        :schema: ServiceMonitorSpecEndpointsTlsConfigCa#configMap
        '''
        result = self._values.get("config_map")
        return typing.cast(typing.Optional["ServiceMonitorSpecEndpointsTlsConfigCaConfigMap"], result)

    @builtins.property
    def secret(self) -> typing.Optional["ServiceMonitorSpecEndpointsTlsConfigCaSecret"]:
        '''
        :schema: ServiceMonitorSpecEndpointsTlsConfigCa#secret
        '''
        result = self._values.get("secret")
        return typing.cast(typing.Optional["ServiceMonitorSpecEndpointsTlsConfigCaSecret"], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "ServiceMonitorSpecEndpointsTlsConfigCa(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpointsTlsConfigCaConfigMap",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "name": "name", "optional": "optional"},
)
class ServiceMonitorSpecEndpointsTlsConfigCaConfigMap:
    def __init__(
        self,
        *,
        key: builtins.str,
        name: typing.Optional[builtins.str] = None,
        optional: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param key: 
        :param name: 
        :param optional: 

        :schema: ServiceMonitorSpecEndpointsTlsConfigCaConfigMap
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__8f281050edbf368ccdc8635525823ea5e2a98d556fc88178a1b5496e01c1d173)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument name", value=name, expected_type=type_hints["name"])
            check_type(argname="argument optional", value=optional, expected_type=type_hints["optional"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
        }
        if name is not None:
            self._values["name"] = name
        if optional is not None:
            self._values["optional"] = optional

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: ServiceMonitorSpecEndpointsTlsConfigCaConfigMap#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpointsTlsConfigCaConfigMap#name
        '''
        result = self._values.get("name")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def optional(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: ServiceMonitorSpecEndpointsTlsConfigCaConfigMap#optional
        '''
        result = self._values.get("optional")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "ServiceMonitorSpecEndpointsTlsConfigCaConfigMap(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpointsTlsConfigCaSecret",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "name": "name", "optional": "optional"},
)
class ServiceMonitorSpecEndpointsTlsConfigCaSecret:
    def __init__(
        self,
        *,
        key: builtins.str,
        name: typing.Optional[builtins.str] = None,
        optional: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param key: 
        :param name: 
        :param optional: 

        :schema: ServiceMonitorSpecEndpointsTlsConfigCaSecret
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__f85e562e9ea5ccc14e6f2ebb0dfa3bec9acedd855dd37e3454e187f0f3eda4ee)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument name", value=name, expected_type=type_hints["name"])
            check_type(argname="argument optional", value=optional, expected_type=type_hints["optional"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
        }
        if name is not None:
            self._values["name"] = name
        if optional is not None:
            self._values["optional"] = optional

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: ServiceMonitorSpecEndpointsTlsConfigCaSecret#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpointsTlsConfigCaSecret#name
        '''
        result = self._values.get("name")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def optional(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: ServiceMonitorSpecEndpointsTlsConfigCaSecret#optional
        '''
        result = self._values.get("optional")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "ServiceMonitorSpecEndpointsTlsConfigCaSecret(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpointsTlsConfigCert",
    jsii_struct_bases=[],
    name_mapping={"config_map": "configMap", "secret": "secret"},
)
class ServiceMonitorSpecEndpointsTlsConfigCert:
    def __init__(
        self,
        *,
        config_map: typing.Optional[typing.Union["ServiceMonitorSpecEndpointsTlsConfigCertConfigMap", typing.Dict[builtins.str, typing.Any]]] = None,
        secret: typing.Optional[typing.Union["ServiceMonitorSpecEndpointsTlsConfigCertSecret", typing.Dict[builtins.str, typing.Any]]] = None,
    ) -> None:
        '''
        :param config_map: 
        :param secret: 

        :schema: ServiceMonitorSpecEndpointsTlsConfigCert
        '''
        if isinstance(config_map, dict):
            config_map = ServiceMonitorSpecEndpointsTlsConfigCertConfigMap(**config_map)
        if isinstance(secret, dict):
            secret = ServiceMonitorSpecEndpointsTlsConfigCertSecret(**secret)
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__cc6582fab979e22866d67d8ec9ed1ca599a28e957aa40db8821f3884224dd8c9)
            check_type(argname="argument config_map", value=config_map, expected_type=type_hints["config_map"])
            check_type(argname="argument secret", value=secret, expected_type=type_hints["secret"])
        self._values: typing.Dict[builtins.str, typing.Any] = {}
        if config_map is not None:
            self._values["config_map"] = config_map
        if secret is not None:
            self._values["secret"] = secret

    @builtins.property
    def config_map(
        self,
    ) -> typing.Optional["ServiceMonitorSpecEndpointsTlsConfigCertConfigMap"]:
        '''
        :schema: ServiceMonitorSpecEndpointsTlsConfigCert#configMap
        '''
        result = self._values.get("config_map")
        return typing.cast(typing.Optional["ServiceMonitorSpecEndpointsTlsConfigCertConfigMap"], result)

    @builtins.property
    def secret(
        self,
    ) -> typing.Optional["ServiceMonitorSpecEndpointsTlsConfigCertSecret"]:
        '''
        :schema: ServiceMonitorSpecEndpointsTlsConfigCert#secret
        '''
        result = self._values.get("secret")
        return typing.cast(typing.Optional["ServiceMonitorSpecEndpointsTlsConfigCertSecret"], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "ServiceMonitorSpecEndpointsTlsConfigCert(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpointsTlsConfigCertConfigMap",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "name": "name", "optional": "optional"},
)
class ServiceMonitorSpecEndpointsTlsConfigCertConfigMap:
    def __init__(
        self,
        *,
        key: builtins.str,
        name: typing.Optional[builtins.str] = None,
        optional: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param key: 
        :param name: 
        :param optional: 

        :schema: ServiceMonitorSpecEndpointsTlsConfigCertConfigMap
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__b7438f334d5518e8db9c8f8f9d7b7eae5d251d0d23c70c6c81de817a9aaca462)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument name", value=name, expected_type=type_hints["name"])
            check_type(argname="argument optional", value=optional, expected_type=type_hints["optional"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
        }
        if name is not None:
            self._values["name"] = name
        if optional is not None:
            self._values["optional"] = optional

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: ServiceMonitorSpecEndpointsTlsConfigCertConfigMap#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpointsTlsConfigCertConfigMap#name
        '''
        result = self._values.get("name")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def optional(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: ServiceMonitorSpecEndpointsTlsConfigCertConfigMap#optional
        '''
        result = self._values.get("optional")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "ServiceMonitorSpecEndpointsTlsConfigCertConfigMap(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpointsTlsConfigCertSecret",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "name": "name", "optional": "optional"},
)
class ServiceMonitorSpecEndpointsTlsConfigCertSecret:
    def __init__(
        self,
        *,
        key: builtins.str,
        name: typing.Optional[builtins.str] = None,
        optional: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param key: 
        :param name: 
        :param optional: 

        :schema: ServiceMonitorSpecEndpointsTlsConfigCertSecret
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__e3376a030f3eeef358b5a57d83bb8f17fec010fde7f20bcf209b46ab4c63161c)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument name", value=name, expected_type=type_hints["name"])
            check_type(argname="argument optional", value=optional, expected_type=type_hints["optional"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
        }
        if name is not None:
            self._values["name"] = name
        if optional is not None:
            self._values["optional"] = optional

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: ServiceMonitorSpecEndpointsTlsConfigCertSecret#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpointsTlsConfigCertSecret#name
        '''
        result = self._values.get("name")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def optional(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: ServiceMonitorSpecEndpointsTlsConfigCertSecret#optional
        '''
        result = self._values.get("optional")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "ServiceMonitorSpecEndpointsTlsConfigCertSecret(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpointsTlsConfigKeySecret",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "name": "name", "optional": "optional"},
)
class ServiceMonitorSpecEndpointsTlsConfigKeySecret:
    def __init__(
        self,
        *,
        key: builtins.str,
        name: typing.Optional[builtins.str] = None,
        optional: typing.Optional[builtins.bool] = None,
    ) -> None:
        '''
        :param key: 
        :param name: 
        :param optional: 

        :schema: ServiceMonitorSpecEndpointsTlsConfigKeySecret
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__a121bd59efac998876b4760c4d96a77dbcfcab89ff8734d421528126d32553a9)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument name", value=name, expected_type=type_hints["name"])
            check_type(argname="argument optional", value=optional, expected_type=type_hints["optional"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
        }
        if name is not None:
            self._values["name"] = name
        if optional is not None:
            self._values["optional"] = optional

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: ServiceMonitorSpecEndpointsTlsConfigKeySecret#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def name(self) -> typing.Optional[builtins.str]:
        '''
        :schema: ServiceMonitorSpecEndpointsTlsConfigKeySecret#name
        '''
        result = self._values.get("name")
        return typing.cast(typing.Optional[builtins.str], result)

    @builtins.property
    def optional(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: ServiceMonitorSpecEndpointsTlsConfigKeySecret#optional
        '''
        result = self._values.get("optional")
        return typing.cast(typing.Optional[builtins.bool], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "ServiceMonitorSpecEndpointsTlsConfigKeySecret(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.enum(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpointsTlsConfigMaxVersion"
)
class ServiceMonitorSpecEndpointsTlsConfigMaxVersion(enum.Enum):
    '''
    :schema: ServiceMonitorSpecEndpointsTlsConfigMaxVersion
    '''

    TLS10 = "TLS10"
    '''TLS10.'''
    TLS11 = "TLS11"
    '''TLS11.'''
    TLS12 = "TLS12"
    '''TLS12.'''
    TLS13 = "TLS13"
    '''TLS13.'''


@jsii.enum(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecEndpointsTlsConfigMinVersion"
)
class ServiceMonitorSpecEndpointsTlsConfigMinVersion(enum.Enum):
    '''
    :schema: ServiceMonitorSpecEndpointsTlsConfigMinVersion
    '''

    TLS10 = "TLS10"
    '''TLS10.'''
    TLS11 = "TLS11"
    '''TLS11.'''
    TLS12 = "TLS12"
    '''TLS12.'''
    TLS13 = "TLS13"
    '''TLS13.'''


@jsii.enum(jsii_type="comcoreosmonitoring.ServiceMonitorSpecFallbackScrapeProtocol")
class ServiceMonitorSpecFallbackScrapeProtocol(enum.Enum):
    '''
    :schema: ServiceMonitorSpecFallbackScrapeProtocol
    '''

    PROMETHEUS_PROTO = "PROMETHEUS_PROTO"
    '''PrometheusProto.'''
    OPEN_METRICS_TEXT0_0_1 = "OPEN_METRICS_TEXT0_0_1"
    '''OpenMetricsText0.0.1.'''
    OPEN_METRICS_TEXT1_0_0 = "OPEN_METRICS_TEXT1_0_0"
    '''OpenMetricsText1.0.0.'''
    PROMETHEUS_TEXT0_0_4 = "PROMETHEUS_TEXT0_0_4"
    '''PrometheusText0.0.4.'''
    PROMETHEUS_TEXT1_0_0 = "PROMETHEUS_TEXT1_0_0"
    '''PrometheusText1.0.0.'''


@jsii.data_type(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecNamespaceSelector",
    jsii_struct_bases=[],
    name_mapping={"any": "any", "match_names": "matchNames"},
)
class ServiceMonitorSpecNamespaceSelector:
    def __init__(
        self,
        *,
        any: typing.Optional[builtins.bool] = None,
        match_names: typing.Optional[typing.Sequence[builtins.str]] = None,
    ) -> None:
        '''
        :param any: 
        :param match_names: 

        :schema: ServiceMonitorSpecNamespaceSelector
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__f3777ad0e448bbe33a35bb765a202fa80d5ee3d0645daad234080935f7a1382a)
            check_type(argname="argument any", value=any, expected_type=type_hints["any"])
            check_type(argname="argument match_names", value=match_names, expected_type=type_hints["match_names"])
        self._values: typing.Dict[builtins.str, typing.Any] = {}
        if any is not None:
            self._values["any"] = any
        if match_names is not None:
            self._values["match_names"] = match_names

    @builtins.property
    def any(self) -> typing.Optional[builtins.bool]:
        '''
        :schema: ServiceMonitorSpecNamespaceSelector#any
        '''
        result = self._values.get("any")
        return typing.cast(typing.Optional[builtins.bool], result)

    @builtins.property
    def match_names(self) -> typing.Optional[typing.List[builtins.str]]:
        '''
        :schema: ServiceMonitorSpecNamespaceSelector#matchNames
        '''
        result = self._values.get("match_names")
        return typing.cast(typing.Optional[typing.List[builtins.str]], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "ServiceMonitorSpecNamespaceSelector(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


class ServiceMonitorSpecNativeHistogramMinBucketFactor(
    metaclass=jsii.JSIIMeta,
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecNativeHistogramMinBucketFactor",
):
    '''
    :schema: ServiceMonitorSpecNativeHistogramMinBucketFactor
    '''

    @jsii.member(jsii_name="fromNumber")
    @builtins.classmethod
    def from_number(
        cls,
        value: jsii.Number,
    ) -> "ServiceMonitorSpecNativeHistogramMinBucketFactor":
        '''
        :param value: -
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__e8a6779721c4ee6d73fe76af6ac8919cc90a46e9e0868081107a1c48538b6afe)
            check_type(argname="argument value", value=value, expected_type=type_hints["value"])
        return typing.cast("ServiceMonitorSpecNativeHistogramMinBucketFactor", jsii.sinvoke(cls, "fromNumber", [value]))

    @jsii.member(jsii_name="fromString")
    @builtins.classmethod
    def from_string(
        cls,
        value: builtins.str,
    ) -> "ServiceMonitorSpecNativeHistogramMinBucketFactor":
        '''
        :param value: -
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__08262292237b726873c9600835533b74d887545a5ad9bbcbc287af95587f509d)
            check_type(argname="argument value", value=value, expected_type=type_hints["value"])
        return typing.cast("ServiceMonitorSpecNativeHistogramMinBucketFactor", jsii.sinvoke(cls, "fromString", [value]))

    @builtins.property
    @jsii.member(jsii_name="value")
    def value(self) -> typing.Union[builtins.str, jsii.Number]:
        return typing.cast(typing.Union[builtins.str, jsii.Number], jsii.get(self, "value"))


@jsii.enum(jsii_type="comcoreosmonitoring.ServiceMonitorSpecScrapeProtocols")
class ServiceMonitorSpecScrapeProtocols(enum.Enum):
    '''
    :schema: ServiceMonitorSpecScrapeProtocols
    '''

    PROMETHEUS_PROTO = "PROMETHEUS_PROTO"
    '''PrometheusProto.'''
    OPEN_METRICS_TEXT0_0_1 = "OPEN_METRICS_TEXT0_0_1"
    '''OpenMetricsText0.0.1.'''
    OPEN_METRICS_TEXT1_0_0 = "OPEN_METRICS_TEXT1_0_0"
    '''OpenMetricsText1.0.0.'''
    PROMETHEUS_TEXT0_0_4 = "PROMETHEUS_TEXT0_0_4"
    '''PrometheusText0.0.4.'''
    PROMETHEUS_TEXT1_0_0 = "PROMETHEUS_TEXT1_0_0"
    '''PrometheusText1.0.0.'''


@jsii.data_type(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecSelector",
    jsii_struct_bases=[],
    name_mapping={
        "match_expressions": "matchExpressions",
        "match_labels": "matchLabels",
    },
)
class ServiceMonitorSpecSelector:
    def __init__(
        self,
        *,
        match_expressions: typing.Optional[typing.Sequence[typing.Union["ServiceMonitorSpecSelectorMatchExpressions", typing.Dict[builtins.str, typing.Any]]]] = None,
        match_labels: typing.Optional[typing.Mapping[builtins.str, builtins.str]] = None,
    ) -> None:
        '''
        :param match_expressions: 
        :param match_labels: 

        :schema: ServiceMonitorSpecSelector
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__75475617ce7ac77ec0e4c501cb7ce5e19effcb4debd314d1f947679b9fcba6e1)
            check_type(argname="argument match_expressions", value=match_expressions, expected_type=type_hints["match_expressions"])
            check_type(argname="argument match_labels", value=match_labels, expected_type=type_hints["match_labels"])
        self._values: typing.Dict[builtins.str, typing.Any] = {}
        if match_expressions is not None:
            self._values["match_expressions"] = match_expressions
        if match_labels is not None:
            self._values["match_labels"] = match_labels

    @builtins.property
    def match_expressions(
        self,
    ) -> typing.Optional[typing.List["ServiceMonitorSpecSelectorMatchExpressions"]]:
        '''
        :schema: ServiceMonitorSpecSelector#matchExpressions
        '''
        result = self._values.get("match_expressions")
        return typing.cast(typing.Optional[typing.List["ServiceMonitorSpecSelectorMatchExpressions"]], result)

    @builtins.property
    def match_labels(
        self,
    ) -> typing.Optional[typing.Mapping[builtins.str, builtins.str]]:
        '''
        :schema: ServiceMonitorSpecSelector#matchLabels
        '''
        result = self._values.get("match_labels")
        return typing.cast(typing.Optional[typing.Mapping[builtins.str, builtins.str]], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "ServiceMonitorSpecSelector(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.data_type(
    jsii_type="comcoreosmonitoring.ServiceMonitorSpecSelectorMatchExpressions",
    jsii_struct_bases=[],
    name_mapping={"key": "key", "operator": "operator", "values": "values"},
)
class ServiceMonitorSpecSelectorMatchExpressions:
    def __init__(
        self,
        *,
        key: builtins.str,
        operator: builtins.str,
        values: typing.Optional[typing.Sequence[builtins.str]] = None,
    ) -> None:
        '''
        :param key: 
        :param operator: 
        :param values: 

        :schema: ServiceMonitorSpecSelectorMatchExpressions
        '''
        if __debug__:
            type_hints = cached_type_hints(_typecheckingstub__8b17baff1becd42b6823f8a48b1b57fa905d0467e143302eafd1d9d0c098db45)
            check_type(argname="argument key", value=key, expected_type=type_hints["key"])
            check_type(argname="argument operator", value=operator, expected_type=type_hints["operator"])
            check_type(argname="argument values", value=values, expected_type=type_hints["values"])
        self._values: typing.Dict[builtins.str, typing.Any] = {
            "key": key,
            "operator": operator,
        }
        if values is not None:
            self._values["values"] = values

    @builtins.property
    def key(self) -> builtins.str:
        '''
        :schema: ServiceMonitorSpecSelectorMatchExpressions#key
        '''
        result = self._values.get("key")
        assert result is not None, "Required property 'key' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def operator(self) -> builtins.str:
        '''
        :schema: ServiceMonitorSpecSelectorMatchExpressions#operator
        '''
        result = self._values.get("operator")
        assert result is not None, "Required property 'operator' is missing"
        return typing.cast(builtins.str, result)

    @builtins.property
    def values(self) -> typing.Optional[typing.List[builtins.str]]:
        '''
        :schema: ServiceMonitorSpecSelectorMatchExpressions#values
        '''
        result = self._values.get("values")
        return typing.cast(typing.Optional[typing.List[builtins.str]], result)

    def __eq__(self, rhs: typing.Any) -> builtins.bool:
        return isinstance(rhs, self.__class__) and rhs._values == self._values

    def __ne__(self, rhs: typing.Any) -> builtins.bool:
        return not (rhs == self)

    def __repr__(self) -> str:
        return "ServiceMonitorSpecSelectorMatchExpressions(%s)" % ", ".join(
            k + "=" + repr(v) for k, v in self._values.items()
        )


@jsii.enum(jsii_type="comcoreosmonitoring.ServiceMonitorSpecSelectorMechanism")
class ServiceMonitorSpecSelectorMechanism(enum.Enum):
    '''
    :schema: ServiceMonitorSpecSelectorMechanism
    '''

    RELABEL_CONFIG = "RELABEL_CONFIG"
    '''RelabelConfig.'''
    ROLE_SELECTOR = "ROLE_SELECTOR"
    '''RoleSelector.'''


@jsii.enum(jsii_type="comcoreosmonitoring.ServiceMonitorSpecServiceDiscoveryRole")
class ServiceMonitorSpecServiceDiscoveryRole(enum.Enum):
    '''
    :schema: ServiceMonitorSpecServiceDiscoveryRole
    '''

    ENDPOINTS = "ENDPOINTS"
    '''Endpoints.'''
    ENDPOINT_SLICE = "ENDPOINT_SLICE"
    '''EndpointSlice.'''


__all__ = [
    "PodMonitor",
    "PodMonitorProps",
    "PodMonitorSpec",
    "PodMonitorSpecAttachMetadata",
    "PodMonitorSpecFallbackScrapeProtocol",
    "PodMonitorSpecNamespaceSelector",
    "PodMonitorSpecNativeHistogramMinBucketFactor",
    "PodMonitorSpecPodMetricsEndpoints",
    "PodMonitorSpecPodMetricsEndpointsAuthorization",
    "PodMonitorSpecPodMetricsEndpointsAuthorizationCredentials",
    "PodMonitorSpecPodMetricsEndpointsBasicAuth",
    "PodMonitorSpecPodMetricsEndpointsBasicAuthPassword",
    "PodMonitorSpecPodMetricsEndpointsBasicAuthUsername",
    "PodMonitorSpecPodMetricsEndpointsBearerTokenSecret",
    "PodMonitorSpecPodMetricsEndpointsMetricRelabelings",
    "PodMonitorSpecPodMetricsEndpointsMetricRelabelingsAction",
    "PodMonitorSpecPodMetricsEndpointsOauth2",
    "PodMonitorSpecPodMetricsEndpointsOauth2ClientId",
    "PodMonitorSpecPodMetricsEndpointsOauth2ClientIdConfigMap",
    "PodMonitorSpecPodMetricsEndpointsOauth2ClientIdSecret",
    "PodMonitorSpecPodMetricsEndpointsOauth2ClientSecret",
    "PodMonitorSpecPodMetricsEndpointsOauth2ProxyConnectHeader",
    "PodMonitorSpecPodMetricsEndpointsOauth2TlsConfig",
    "PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCa",
    "PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCaConfigMap",
    "PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCaSecret",
    "PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCert",
    "PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCertConfigMap",
    "PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCertSecret",
    "PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigKeySecret",
    "PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigMaxVersion",
    "PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigMinVersion",
    "PodMonitorSpecPodMetricsEndpointsProxyConnectHeader",
    "PodMonitorSpecPodMetricsEndpointsRelabelings",
    "PodMonitorSpecPodMetricsEndpointsRelabelingsAction",
    "PodMonitorSpecPodMetricsEndpointsScheme",
    "PodMonitorSpecPodMetricsEndpointsTargetPort",
    "PodMonitorSpecPodMetricsEndpointsTlsConfig",
    "PodMonitorSpecPodMetricsEndpointsTlsConfigCa",
    "PodMonitorSpecPodMetricsEndpointsTlsConfigCaConfigMap",
    "PodMonitorSpecPodMetricsEndpointsTlsConfigCaSecret",
    "PodMonitorSpecPodMetricsEndpointsTlsConfigCert",
    "PodMonitorSpecPodMetricsEndpointsTlsConfigCertConfigMap",
    "PodMonitorSpecPodMetricsEndpointsTlsConfigCertSecret",
    "PodMonitorSpecPodMetricsEndpointsTlsConfigKeySecret",
    "PodMonitorSpecPodMetricsEndpointsTlsConfigMaxVersion",
    "PodMonitorSpecPodMetricsEndpointsTlsConfigMinVersion",
    "PodMonitorSpecScrapeProtocols",
    "PodMonitorSpecSelector",
    "PodMonitorSpecSelectorMatchExpressions",
    "PodMonitorSpecSelectorMechanism",
    "PrometheusRule",
    "PrometheusRuleProps",
    "PrometheusRuleSpec",
    "PrometheusRuleSpecGroups",
    "PrometheusRuleSpecGroupsRules",
    "PrometheusRuleSpecGroupsRulesExpr",
    "ServiceMonitor",
    "ServiceMonitorProps",
    "ServiceMonitorSpec",
    "ServiceMonitorSpecAttachMetadata",
    "ServiceMonitorSpecEndpoints",
    "ServiceMonitorSpecEndpointsAuthorization",
    "ServiceMonitorSpecEndpointsAuthorizationCredentials",
    "ServiceMonitorSpecEndpointsBasicAuth",
    "ServiceMonitorSpecEndpointsBasicAuthPassword",
    "ServiceMonitorSpecEndpointsBasicAuthUsername",
    "ServiceMonitorSpecEndpointsBearerTokenSecret",
    "ServiceMonitorSpecEndpointsMetricRelabelings",
    "ServiceMonitorSpecEndpointsMetricRelabelingsAction",
    "ServiceMonitorSpecEndpointsOauth2",
    "ServiceMonitorSpecEndpointsOauth2ClientId",
    "ServiceMonitorSpecEndpointsOauth2ClientIdConfigMap",
    "ServiceMonitorSpecEndpointsOauth2ClientIdSecret",
    "ServiceMonitorSpecEndpointsOauth2ClientSecret",
    "ServiceMonitorSpecEndpointsOauth2ProxyConnectHeader",
    "ServiceMonitorSpecEndpointsOauth2TlsConfig",
    "ServiceMonitorSpecEndpointsOauth2TlsConfigCa",
    "ServiceMonitorSpecEndpointsOauth2TlsConfigCaConfigMap",
    "ServiceMonitorSpecEndpointsOauth2TlsConfigCaSecret",
    "ServiceMonitorSpecEndpointsOauth2TlsConfigCert",
    "ServiceMonitorSpecEndpointsOauth2TlsConfigCertConfigMap",
    "ServiceMonitorSpecEndpointsOauth2TlsConfigCertSecret",
    "ServiceMonitorSpecEndpointsOauth2TlsConfigKeySecret",
    "ServiceMonitorSpecEndpointsOauth2TlsConfigMaxVersion",
    "ServiceMonitorSpecEndpointsOauth2TlsConfigMinVersion",
    "ServiceMonitorSpecEndpointsProxyConnectHeader",
    "ServiceMonitorSpecEndpointsRelabelings",
    "ServiceMonitorSpecEndpointsRelabelingsAction",
    "ServiceMonitorSpecEndpointsScheme",
    "ServiceMonitorSpecEndpointsTargetPort",
    "ServiceMonitorSpecEndpointsTlsConfig",
    "ServiceMonitorSpecEndpointsTlsConfigCa",
    "ServiceMonitorSpecEndpointsTlsConfigCaConfigMap",
    "ServiceMonitorSpecEndpointsTlsConfigCaSecret",
    "ServiceMonitorSpecEndpointsTlsConfigCert",
    "ServiceMonitorSpecEndpointsTlsConfigCertConfigMap",
    "ServiceMonitorSpecEndpointsTlsConfigCertSecret",
    "ServiceMonitorSpecEndpointsTlsConfigKeySecret",
    "ServiceMonitorSpecEndpointsTlsConfigMaxVersion",
    "ServiceMonitorSpecEndpointsTlsConfigMinVersion",
    "ServiceMonitorSpecFallbackScrapeProtocol",
    "ServiceMonitorSpecNamespaceSelector",
    "ServiceMonitorSpecNativeHistogramMinBucketFactor",
    "ServiceMonitorSpecScrapeProtocols",
    "ServiceMonitorSpecSelector",
    "ServiceMonitorSpecSelectorMatchExpressions",
    "ServiceMonitorSpecSelectorMechanism",
    "ServiceMonitorSpecServiceDiscoveryRole",
]

publication.publish()

def _typecheckingstub__4386e5e7b16cd06c6dea31e4f9d3a465062ae2fc79fc17d9b5ad62158a2479b1(
    scope: _constructs_77d1e7e8.Construct,
    id: builtins.str,
    *,
    spec: typing.Union[PodMonitorSpec, typing.Dict[builtins.str, typing.Any]],
    metadata: typing.Optional[typing.Union[_cdk8s_d3d9af27.ApiObjectMetadata, typing.Dict[builtins.str, typing.Any]]] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__000289246622513cc68c28097b13cc8f7e26acde7c493f0f44c1bc1caaef8375(
    *,
    spec: typing.Union[PodMonitorSpec, typing.Dict[builtins.str, typing.Any]],
    metadata: typing.Optional[typing.Union[_cdk8s_d3d9af27.ApiObjectMetadata, typing.Dict[builtins.str, typing.Any]]] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__d0fc366a7b37e8f5ef77cf5c54a58cc0785b1b082756c925b98a051159c271b2(
    *,
    selector: typing.Union[PodMonitorSpecSelector, typing.Dict[builtins.str, typing.Any]],
    attach_metadata: typing.Optional[typing.Union[PodMonitorSpecAttachMetadata, typing.Dict[builtins.str, typing.Any]]] = None,
    body_size_limit: typing.Optional[builtins.str] = None,
    convert_classic_histograms_to_nhcb: typing.Optional[builtins.bool] = None,
    fallback_scrape_protocol: typing.Optional[PodMonitorSpecFallbackScrapeProtocol] = None,
    job_label: typing.Optional[builtins.str] = None,
    keep_dropped_targets: typing.Optional[jsii.Number] = None,
    label_limit: typing.Optional[jsii.Number] = None,
    label_name_length_limit: typing.Optional[jsii.Number] = None,
    label_value_length_limit: typing.Optional[jsii.Number] = None,
    namespace_selector: typing.Optional[typing.Union[PodMonitorSpecNamespaceSelector, typing.Dict[builtins.str, typing.Any]]] = None,
    native_histogram_bucket_limit: typing.Optional[jsii.Number] = None,
    native_histogram_min_bucket_factor: typing.Optional[PodMonitorSpecNativeHistogramMinBucketFactor] = None,
    pod_metrics_endpoints: typing.Optional[typing.Sequence[typing.Union[PodMonitorSpecPodMetricsEndpoints, typing.Dict[builtins.str, typing.Any]]]] = None,
    pod_target_labels: typing.Optional[typing.Sequence[builtins.str]] = None,
    sample_limit: typing.Optional[jsii.Number] = None,
    scrape_class: typing.Optional[builtins.str] = None,
    scrape_classic_histograms: typing.Optional[builtins.bool] = None,
    scrape_native_histograms: typing.Optional[builtins.bool] = None,
    scrape_protocols: typing.Optional[typing.Sequence[PodMonitorSpecScrapeProtocols]] = None,
    selector_mechanism: typing.Optional[PodMonitorSpecSelectorMechanism] = None,
    target_limit: typing.Optional[jsii.Number] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__9cf64863d1802b45c7cc10241d6586998686fc854a54b782affcff9ec3743340(
    *,
    node: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__524d04d3a7bd18ec278a8abacd46bb31235156344174cf6cbd345d16acc9b446(
    *,
    any: typing.Optional[builtins.bool] = None,
    match_names: typing.Optional[typing.Sequence[builtins.str]] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__229ab31a16e6b3ca0ce438cadb42963caccecaa6cf4a908753c50ab28891979c(
    value: jsii.Number,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__057dafa002ae2951724d3b9ff0b4cda82d62c6082387b619ecbb5c5433e32c53(
    value: builtins.str,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__7fb85d56f42b3bca0c237a42a5b0bd2416f8ac5def6a889756ef8363478770ae(
    *,
    authorization: typing.Optional[typing.Union[PodMonitorSpecPodMetricsEndpointsAuthorization, typing.Dict[builtins.str, typing.Any]]] = None,
    basic_auth: typing.Optional[typing.Union[PodMonitorSpecPodMetricsEndpointsBasicAuth, typing.Dict[builtins.str, typing.Any]]] = None,
    bearer_token_secret: typing.Optional[typing.Union[PodMonitorSpecPodMetricsEndpointsBearerTokenSecret, typing.Dict[builtins.str, typing.Any]]] = None,
    enable_http2: typing.Optional[builtins.bool] = None,
    filter_running: typing.Optional[builtins.bool] = None,
    follow_redirects: typing.Optional[builtins.bool] = None,
    honor_labels: typing.Optional[builtins.bool] = None,
    honor_timestamps: typing.Optional[builtins.bool] = None,
    interval: typing.Optional[builtins.str] = None,
    metric_relabelings: typing.Optional[typing.Sequence[typing.Union[PodMonitorSpecPodMetricsEndpointsMetricRelabelings, typing.Dict[builtins.str, typing.Any]]]] = None,
    no_proxy: typing.Optional[builtins.str] = None,
    oauth2: typing.Optional[typing.Union[PodMonitorSpecPodMetricsEndpointsOauth2, typing.Dict[builtins.str, typing.Any]]] = None,
    params: typing.Optional[typing.Mapping[builtins.str, typing.Sequence[builtins.str]]] = None,
    path: typing.Optional[builtins.str] = None,
    port: typing.Optional[builtins.str] = None,
    port_number: typing.Optional[jsii.Number] = None,
    proxy_connect_header: typing.Optional[typing.Mapping[builtins.str, typing.Sequence[typing.Union[PodMonitorSpecPodMetricsEndpointsProxyConnectHeader, typing.Dict[builtins.str, typing.Any]]]]] = None,
    proxy_from_environment: typing.Optional[builtins.bool] = None,
    proxy_url: typing.Optional[builtins.str] = None,
    relabelings: typing.Optional[typing.Sequence[typing.Union[PodMonitorSpecPodMetricsEndpointsRelabelings, typing.Dict[builtins.str, typing.Any]]]] = None,
    scheme: typing.Optional[PodMonitorSpecPodMetricsEndpointsScheme] = None,
    scrape_timeout: typing.Optional[builtins.str] = None,
    target_port: typing.Optional[PodMonitorSpecPodMetricsEndpointsTargetPort] = None,
    tls_config: typing.Optional[typing.Union[PodMonitorSpecPodMetricsEndpointsTlsConfig, typing.Dict[builtins.str, typing.Any]]] = None,
    track_timestamps_staleness: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__7184130e0297603890994638cf3fe105c324522636329be7d365b4caa99baf1b(
    *,
    credentials: typing.Optional[typing.Union[PodMonitorSpecPodMetricsEndpointsAuthorizationCredentials, typing.Dict[builtins.str, typing.Any]]] = None,
    type: typing.Optional[builtins.str] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__0fc9e45c008064de1a182658b1215f305d624b621698dc17112c99f6230def86(
    *,
    key: builtins.str,
    name: typing.Optional[builtins.str] = None,
    optional: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__2545b437ad478bd4a6638548fde179c973c5c4a07ca4b29e3e6fe4a2f8c374d1(
    *,
    password: typing.Optional[typing.Union[PodMonitorSpecPodMetricsEndpointsBasicAuthPassword, typing.Dict[builtins.str, typing.Any]]] = None,
    username: typing.Optional[typing.Union[PodMonitorSpecPodMetricsEndpointsBasicAuthUsername, typing.Dict[builtins.str, typing.Any]]] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__59c1d7d9d5a64249277716e8949dea960ddfecbfa6a66010bb60bf4e556f829a(
    *,
    key: builtins.str,
    name: typing.Optional[builtins.str] = None,
    optional: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__6fbcc8c05f43aa7082b960d633ba835fdc0c3116f38bc483452ed66a2f4b586c(
    *,
    key: builtins.str,
    name: typing.Optional[builtins.str] = None,
    optional: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__87fc4a5f5e8dcc46090ce0a9e6d5ab45228f3fff794c35c4e1d2bd64aaff816f(
    *,
    key: builtins.str,
    name: typing.Optional[builtins.str] = None,
    optional: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__0d631237a06617099a9c0a422610a6cae1bbcadbd056a4f09156c9ab72fbebba(
    *,
    action: typing.Optional[PodMonitorSpecPodMetricsEndpointsMetricRelabelingsAction] = None,
    modulus: typing.Optional[jsii.Number] = None,
    regex: typing.Optional[builtins.str] = None,
    replacement: typing.Optional[builtins.str] = None,
    separator: typing.Optional[builtins.str] = None,
    source_labels: typing.Optional[typing.Sequence[builtins.str]] = None,
    target_label: typing.Optional[builtins.str] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__81a00f959549bc5665afe503ca50462a36178f3d7bf8d2cb9022a048aa804912(
    *,
    client_id: typing.Union[PodMonitorSpecPodMetricsEndpointsOauth2ClientId, typing.Dict[builtins.str, typing.Any]],
    client_secret: typing.Union[PodMonitorSpecPodMetricsEndpointsOauth2ClientSecret, typing.Dict[builtins.str, typing.Any]],
    token_url: builtins.str,
    endpoint_params: typing.Optional[typing.Mapping[builtins.str, builtins.str]] = None,
    no_proxy: typing.Optional[builtins.str] = None,
    proxy_connect_header: typing.Optional[typing.Mapping[builtins.str, typing.Sequence[typing.Union[PodMonitorSpecPodMetricsEndpointsOauth2ProxyConnectHeader, typing.Dict[builtins.str, typing.Any]]]]] = None,
    proxy_from_environment: typing.Optional[builtins.bool] = None,
    proxy_url: typing.Optional[builtins.str] = None,
    scopes: typing.Optional[typing.Sequence[builtins.str]] = None,
    tls_config: typing.Optional[typing.Union[PodMonitorSpecPodMetricsEndpointsOauth2TlsConfig, typing.Dict[builtins.str, typing.Any]]] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__882a145d76f211b82a552985c279aaee476d78f66f81d883237f04627ae55e9d(
    *,
    config_map: typing.Optional[typing.Union[PodMonitorSpecPodMetricsEndpointsOauth2ClientIdConfigMap, typing.Dict[builtins.str, typing.Any]]] = None,
    secret: typing.Optional[typing.Union[PodMonitorSpecPodMetricsEndpointsOauth2ClientIdSecret, typing.Dict[builtins.str, typing.Any]]] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__a87e67e699e5bd318badc8319863c583b885290baab2c193d0f1ef2f2f226af5(
    *,
    key: builtins.str,
    name: typing.Optional[builtins.str] = None,
    optional: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__75390537f55e1853616a5f608e2356ba18242be0f39436be16a8b5c42a6ba494(
    *,
    key: builtins.str,
    name: typing.Optional[builtins.str] = None,
    optional: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__845fb0bc9456cf88d46da6c3fa73531e030544c1e8fa6dee990c603fe18eacc2(
    *,
    key: builtins.str,
    name: typing.Optional[builtins.str] = None,
    optional: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__8af13ed4673c03e44fe34d5fdf5529f250573865ef2d8784578342fe6a1ff590(
    *,
    key: builtins.str,
    name: typing.Optional[builtins.str] = None,
    optional: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__42f45a927cd6c05b80eecd9903f458f6189952bbc34481c1db97b5b891ad9d6d(
    *,
    ca: typing.Optional[typing.Union[PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCa, typing.Dict[builtins.str, typing.Any]]] = None,
    cert: typing.Optional[typing.Union[PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCert, typing.Dict[builtins.str, typing.Any]]] = None,
    insecure_skip_verify: typing.Optional[builtins.bool] = None,
    key_secret: typing.Optional[typing.Union[PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigKeySecret, typing.Dict[builtins.str, typing.Any]]] = None,
    max_version: typing.Optional[PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigMaxVersion] = None,
    min_version: typing.Optional[PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigMinVersion] = None,
    server_name: typing.Optional[builtins.str] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__c0640480251c9686aaaf57e24fb27d5277027d17ba87db99c8aadfd80b6bd962(
    *,
    config_map: typing.Optional[typing.Union[PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCaConfigMap, typing.Dict[builtins.str, typing.Any]]] = None,
    secret: typing.Optional[typing.Union[PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCaSecret, typing.Dict[builtins.str, typing.Any]]] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__e170820efb51f8a9e6fde163cfef4acdd1e792b94a1a657cda9cd549202e6d98(
    *,
    key: builtins.str,
    name: typing.Optional[builtins.str] = None,
    optional: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__28a7ca04df3796807af8c4c5e87bbaffaa636b0a60a5ecc317efb93aea394460(
    *,
    key: builtins.str,
    name: typing.Optional[builtins.str] = None,
    optional: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__37fd4bbec00b51706b60b789bfcc054b2920cc3027c82d94c38afaf565ab92b0(
    *,
    config_map: typing.Optional[typing.Union[PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCertConfigMap, typing.Dict[builtins.str, typing.Any]]] = None,
    secret: typing.Optional[typing.Union[PodMonitorSpecPodMetricsEndpointsOauth2TlsConfigCertSecret, typing.Dict[builtins.str, typing.Any]]] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__dffe632a5b8d8fca75a9ebdf7da329ce475ae55233b089fbf39b20d16fdc2a00(
    *,
    key: builtins.str,
    name: typing.Optional[builtins.str] = None,
    optional: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__afb309797ebe60ddf740d6243de27ddcfbf79eeb888ad3d01fc3dd45d4eb5353(
    *,
    key: builtins.str,
    name: typing.Optional[builtins.str] = None,
    optional: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__d2d3bb50278a6a5aae1d9fd297bf4c080945e32bfb10c3011b900146dd16c914(
    *,
    key: builtins.str,
    name: typing.Optional[builtins.str] = None,
    optional: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__467944ef4d470c658d7ad35c987025b05cfcd59efebf4d3a5026fc11b1b3a17a(
    *,
    key: builtins.str,
    name: typing.Optional[builtins.str] = None,
    optional: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__56d9a4ee0d45464a0442734472d6d978277b854ed798573def6397bf849beace(
    *,
    action: typing.Optional[PodMonitorSpecPodMetricsEndpointsRelabelingsAction] = None,
    modulus: typing.Optional[jsii.Number] = None,
    regex: typing.Optional[builtins.str] = None,
    replacement: typing.Optional[builtins.str] = None,
    separator: typing.Optional[builtins.str] = None,
    source_labels: typing.Optional[typing.Sequence[builtins.str]] = None,
    target_label: typing.Optional[builtins.str] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__d1a59e5924c18a421e1d23fce338b7be139e7d21e570263f8225a73987f54aea(
    value: jsii.Number,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__821b827ed727d856d427ac44eacbaba07ce8be339005aef59e8ead31ed546614(
    value: builtins.str,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__c234aac7608f795da982e701f01fe96fa6fd624796fd52dfe8e71630c8dcba31(
    *,
    ca: typing.Optional[typing.Union[PodMonitorSpecPodMetricsEndpointsTlsConfigCa, typing.Dict[builtins.str, typing.Any]]] = None,
    cert: typing.Optional[typing.Union[PodMonitorSpecPodMetricsEndpointsTlsConfigCert, typing.Dict[builtins.str, typing.Any]]] = None,
    insecure_skip_verify: typing.Optional[builtins.bool] = None,
    key_secret: typing.Optional[typing.Union[PodMonitorSpecPodMetricsEndpointsTlsConfigKeySecret, typing.Dict[builtins.str, typing.Any]]] = None,
    max_version: typing.Optional[PodMonitorSpecPodMetricsEndpointsTlsConfigMaxVersion] = None,
    min_version: typing.Optional[PodMonitorSpecPodMetricsEndpointsTlsConfigMinVersion] = None,
    server_name: typing.Optional[builtins.str] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__03938493060822b9ba174767d75d5df101643e87d7b3a5439ac9110f9f494b74(
    *,
    config_map: typing.Optional[typing.Union[PodMonitorSpecPodMetricsEndpointsTlsConfigCaConfigMap, typing.Dict[builtins.str, typing.Any]]] = None,
    secret: typing.Optional[typing.Union[PodMonitorSpecPodMetricsEndpointsTlsConfigCaSecret, typing.Dict[builtins.str, typing.Any]]] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__0ce702022aaf3b6d024489105d1b9437d6127bd3e09fed09021308770cbafd4e(
    *,
    key: builtins.str,
    name: typing.Optional[builtins.str] = None,
    optional: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__c275c9c904aed455ef59e7656e0f2de4e2646d5581f314723e4b397f4e03882b(
    *,
    key: builtins.str,
    name: typing.Optional[builtins.str] = None,
    optional: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__bc507a8e77eaf0474f8f1794aa0ed49ce1f9801773381ddd5a9c2494dab06d44(
    *,
    config_map: typing.Optional[typing.Union[PodMonitorSpecPodMetricsEndpointsTlsConfigCertConfigMap, typing.Dict[builtins.str, typing.Any]]] = None,
    secret: typing.Optional[typing.Union[PodMonitorSpecPodMetricsEndpointsTlsConfigCertSecret, typing.Dict[builtins.str, typing.Any]]] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__a1df02457b753ec51015d32e1a861cc8d0a5e52d75c90db2ff897b0dd4e943db(
    *,
    key: builtins.str,
    name: typing.Optional[builtins.str] = None,
    optional: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__ce57b1e29f8b36b9c9aedd837674e716b4d36adab6626dc3c50d67176c27253e(
    *,
    key: builtins.str,
    name: typing.Optional[builtins.str] = None,
    optional: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__11879abdb955ac286dfb2039516b0f0f7c92ddbfb7b6d438c736c679acdf908c(
    *,
    key: builtins.str,
    name: typing.Optional[builtins.str] = None,
    optional: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__0807ae16c2fa6e21f535839f0ad802f79dfd66a804e502f5dba590cd2f109de9(
    *,
    match_expressions: typing.Optional[typing.Sequence[typing.Union[PodMonitorSpecSelectorMatchExpressions, typing.Dict[builtins.str, typing.Any]]]] = None,
    match_labels: typing.Optional[typing.Mapping[builtins.str, builtins.str]] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__ce9562a0e60a90646490d8b92342f57bf5481e21a65c0af83c6693e61840cf13(
    *,
    key: builtins.str,
    operator: builtins.str,
    values: typing.Optional[typing.Sequence[builtins.str]] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__ec6724b05d6be8a069ac535d8d8d4461a23782e0a344fbd36d14e78cee59a003(
    scope: _constructs_77d1e7e8.Construct,
    id: builtins.str,
    *,
    spec: typing.Union[PrometheusRuleSpec, typing.Dict[builtins.str, typing.Any]],
    metadata: typing.Optional[typing.Union[_cdk8s_d3d9af27.ApiObjectMetadata, typing.Dict[builtins.str, typing.Any]]] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__e21b7008853c9699b14d4efcceafa6ff9c975095432e2544845140d3312103bd(
    *,
    spec: typing.Union[PrometheusRuleSpec, typing.Dict[builtins.str, typing.Any]],
    metadata: typing.Optional[typing.Union[_cdk8s_d3d9af27.ApiObjectMetadata, typing.Dict[builtins.str, typing.Any]]] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__b7d731a17a6145319669c5ad04bbd6037ce4798b1fc1890c11154acc9d5785cc(
    *,
    groups: typing.Optional[typing.Sequence[typing.Union[PrometheusRuleSpecGroups, typing.Dict[builtins.str, typing.Any]]]] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__98e68b7aa3a9e2ab89ed463a5d6f8881ee6f7e42ab4533bfc91fcfee1f79e104(
    *,
    name: builtins.str,
    interval: typing.Optional[builtins.str] = None,
    labels: typing.Optional[typing.Mapping[builtins.str, builtins.str]] = None,
    limit: typing.Optional[jsii.Number] = None,
    partial_response_strategy: typing.Optional[builtins.str] = None,
    query_offset: typing.Optional[builtins.str] = None,
    rules: typing.Optional[typing.Sequence[typing.Union[PrometheusRuleSpecGroupsRules, typing.Dict[builtins.str, typing.Any]]]] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__0c1781d51e64e7d339630495159adc2c953dc730d79c53f3189530376fc669b9(
    *,
    expr: PrometheusRuleSpecGroupsRulesExpr,
    alert: typing.Optional[builtins.str] = None,
    annotations: typing.Optional[typing.Mapping[builtins.str, builtins.str]] = None,
    for_: typing.Optional[builtins.str] = None,
    keep_firing_for: typing.Optional[builtins.str] = None,
    labels: typing.Optional[typing.Mapping[builtins.str, builtins.str]] = None,
    record: typing.Optional[builtins.str] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__9d15b24abce544d261347136c421e3c3bfbe004b752ee51d2e6592a3954913ed(
    value: jsii.Number,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__2a72830e7b4ad0667279eb3ab8cb70176dad9058a7eb51c8c68421e360cc0cad(
    value: builtins.str,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__ae743b5825b3e6075ede1500d52f893c3c6a63be14f647f9a44d0e722d356470(
    scope: _constructs_77d1e7e8.Construct,
    id: builtins.str,
    *,
    spec: typing.Union[ServiceMonitorSpec, typing.Dict[builtins.str, typing.Any]],
    metadata: typing.Optional[typing.Union[_cdk8s_d3d9af27.ApiObjectMetadata, typing.Dict[builtins.str, typing.Any]]] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__56bca6778cf6036cd0140b25f1a1429742323914ee819ae9276e47c0e290aaf5(
    *,
    spec: typing.Union[ServiceMonitorSpec, typing.Dict[builtins.str, typing.Any]],
    metadata: typing.Optional[typing.Union[_cdk8s_d3d9af27.ApiObjectMetadata, typing.Dict[builtins.str, typing.Any]]] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__77dad9e9e97980d2d9001de098d81faeb424d5144d09285dc28512f29a3815ba(
    *,
    endpoints: typing.Sequence[typing.Union[ServiceMonitorSpecEndpoints, typing.Dict[builtins.str, typing.Any]]],
    selector: typing.Union[ServiceMonitorSpecSelector, typing.Dict[builtins.str, typing.Any]],
    attach_metadata: typing.Optional[typing.Union[ServiceMonitorSpecAttachMetadata, typing.Dict[builtins.str, typing.Any]]] = None,
    body_size_limit: typing.Optional[builtins.str] = None,
    convert_classic_histograms_to_nhcb: typing.Optional[builtins.bool] = None,
    fallback_scrape_protocol: typing.Optional[ServiceMonitorSpecFallbackScrapeProtocol] = None,
    job_label: typing.Optional[builtins.str] = None,
    keep_dropped_targets: typing.Optional[jsii.Number] = None,
    label_limit: typing.Optional[jsii.Number] = None,
    label_name_length_limit: typing.Optional[jsii.Number] = None,
    label_value_length_limit: typing.Optional[jsii.Number] = None,
    namespace_selector: typing.Optional[typing.Union[ServiceMonitorSpecNamespaceSelector, typing.Dict[builtins.str, typing.Any]]] = None,
    native_histogram_bucket_limit: typing.Optional[jsii.Number] = None,
    native_histogram_min_bucket_factor: typing.Optional[ServiceMonitorSpecNativeHistogramMinBucketFactor] = None,
    pod_target_labels: typing.Optional[typing.Sequence[builtins.str]] = None,
    sample_limit: typing.Optional[jsii.Number] = None,
    scrape_class: typing.Optional[builtins.str] = None,
    scrape_classic_histograms: typing.Optional[builtins.bool] = None,
    scrape_native_histograms: typing.Optional[builtins.bool] = None,
    scrape_protocols: typing.Optional[typing.Sequence[ServiceMonitorSpecScrapeProtocols]] = None,
    selector_mechanism: typing.Optional[ServiceMonitorSpecSelectorMechanism] = None,
    service_discovery_role: typing.Optional[ServiceMonitorSpecServiceDiscoveryRole] = None,
    target_labels: typing.Optional[typing.Sequence[builtins.str]] = None,
    target_limit: typing.Optional[jsii.Number] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__2bbe935572488af708dc3190e619dcc20410fc1feb14d189191dcc70c240bc2a(
    *,
    node: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__0387a341502661c257fa633a8de56a63d951087fafafcbad7e1c75709428ef9f(
    *,
    authorization: typing.Optional[typing.Union[ServiceMonitorSpecEndpointsAuthorization, typing.Dict[builtins.str, typing.Any]]] = None,
    basic_auth: typing.Optional[typing.Union[ServiceMonitorSpecEndpointsBasicAuth, typing.Dict[builtins.str, typing.Any]]] = None,
    bearer_token_file: typing.Optional[builtins.str] = None,
    bearer_token_secret: typing.Optional[typing.Union[ServiceMonitorSpecEndpointsBearerTokenSecret, typing.Dict[builtins.str, typing.Any]]] = None,
    enable_http2: typing.Optional[builtins.bool] = None,
    filter_running: typing.Optional[builtins.bool] = None,
    follow_redirects: typing.Optional[builtins.bool] = None,
    honor_labels: typing.Optional[builtins.bool] = None,
    honor_timestamps: typing.Optional[builtins.bool] = None,
    interval: typing.Optional[builtins.str] = None,
    metric_relabelings: typing.Optional[typing.Sequence[typing.Union[ServiceMonitorSpecEndpointsMetricRelabelings, typing.Dict[builtins.str, typing.Any]]]] = None,
    no_proxy: typing.Optional[builtins.str] = None,
    oauth2: typing.Optional[typing.Union[ServiceMonitorSpecEndpointsOauth2, typing.Dict[builtins.str, typing.Any]]] = None,
    params: typing.Optional[typing.Mapping[builtins.str, typing.Sequence[builtins.str]]] = None,
    path: typing.Optional[builtins.str] = None,
    port: typing.Optional[builtins.str] = None,
    proxy_connect_header: typing.Optional[typing.Mapping[builtins.str, typing.Sequence[typing.Union[ServiceMonitorSpecEndpointsProxyConnectHeader, typing.Dict[builtins.str, typing.Any]]]]] = None,
    proxy_from_environment: typing.Optional[builtins.bool] = None,
    proxy_url: typing.Optional[builtins.str] = None,
    relabelings: typing.Optional[typing.Sequence[typing.Union[ServiceMonitorSpecEndpointsRelabelings, typing.Dict[builtins.str, typing.Any]]]] = None,
    scheme: typing.Optional[ServiceMonitorSpecEndpointsScheme] = None,
    scrape_timeout: typing.Optional[builtins.str] = None,
    target_port: typing.Optional[ServiceMonitorSpecEndpointsTargetPort] = None,
    tls_config: typing.Optional[typing.Union[ServiceMonitorSpecEndpointsTlsConfig, typing.Dict[builtins.str, typing.Any]]] = None,
    track_timestamps_staleness: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__b05be2dbf3d1f785c44186c59ea265d852bfc4c161dd2a667dfb7fb72d3fafab(
    *,
    credentials: typing.Optional[typing.Union[ServiceMonitorSpecEndpointsAuthorizationCredentials, typing.Dict[builtins.str, typing.Any]]] = None,
    type: typing.Optional[builtins.str] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__1c83826f5d1af77f6b472277f612d8fe893abd225721d0ad52a0b6e894c6ca91(
    *,
    key: builtins.str,
    name: typing.Optional[builtins.str] = None,
    optional: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__3bb86167c1eb1b7c3cfb101e3ccc00e531d6a4cf5db0187880449cdd1206f66d(
    *,
    password: typing.Optional[typing.Union[ServiceMonitorSpecEndpointsBasicAuthPassword, typing.Dict[builtins.str, typing.Any]]] = None,
    username: typing.Optional[typing.Union[ServiceMonitorSpecEndpointsBasicAuthUsername, typing.Dict[builtins.str, typing.Any]]] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__7e0aade533948af8db0e7c96e2e543426177c8f6b9848b8d7d378a3a936439ce(
    *,
    key: builtins.str,
    name: typing.Optional[builtins.str] = None,
    optional: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__650161eb2ae5d4744ac93cdb731365c5ebf1f8ffe3eb9fa80895090d59430fc4(
    *,
    key: builtins.str,
    name: typing.Optional[builtins.str] = None,
    optional: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__f101e1b8c5f41fb997e62c8c7f7fc1316f2176377c3a84a57a4345a28bafc76d(
    *,
    key: builtins.str,
    name: typing.Optional[builtins.str] = None,
    optional: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__ecdf834c71cee7105eb773035064fc34b431e349772b048e9be974173861c391(
    *,
    action: typing.Optional[ServiceMonitorSpecEndpointsMetricRelabelingsAction] = None,
    modulus: typing.Optional[jsii.Number] = None,
    regex: typing.Optional[builtins.str] = None,
    replacement: typing.Optional[builtins.str] = None,
    separator: typing.Optional[builtins.str] = None,
    source_labels: typing.Optional[typing.Sequence[builtins.str]] = None,
    target_label: typing.Optional[builtins.str] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__1fbf1a17774c9325051b1afae8b5079d104a808c07e2045229b6a3d401d1fcb4(
    *,
    client_id: typing.Union[ServiceMonitorSpecEndpointsOauth2ClientId, typing.Dict[builtins.str, typing.Any]],
    client_secret: typing.Union[ServiceMonitorSpecEndpointsOauth2ClientSecret, typing.Dict[builtins.str, typing.Any]],
    token_url: builtins.str,
    endpoint_params: typing.Optional[typing.Mapping[builtins.str, builtins.str]] = None,
    no_proxy: typing.Optional[builtins.str] = None,
    proxy_connect_header: typing.Optional[typing.Mapping[builtins.str, typing.Sequence[typing.Union[ServiceMonitorSpecEndpointsOauth2ProxyConnectHeader, typing.Dict[builtins.str, typing.Any]]]]] = None,
    proxy_from_environment: typing.Optional[builtins.bool] = None,
    proxy_url: typing.Optional[builtins.str] = None,
    scopes: typing.Optional[typing.Sequence[builtins.str]] = None,
    tls_config: typing.Optional[typing.Union[ServiceMonitorSpecEndpointsOauth2TlsConfig, typing.Dict[builtins.str, typing.Any]]] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__6b23a4d24eb9eb69c5d201cdffad8413acfa1f419c8a41a1d59e60b419084b5e(
    *,
    config_map: typing.Optional[typing.Union[ServiceMonitorSpecEndpointsOauth2ClientIdConfigMap, typing.Dict[builtins.str, typing.Any]]] = None,
    secret: typing.Optional[typing.Union[ServiceMonitorSpecEndpointsOauth2ClientIdSecret, typing.Dict[builtins.str, typing.Any]]] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__ec94d0b7ad6b1d19e33b596d14da05ba8a4e7ca4ca951dc592d31e9d25189676(
    *,
    key: builtins.str,
    name: typing.Optional[builtins.str] = None,
    optional: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__87adb09a12da5a2e30ed878fc51cb100bb3d1390ff6aaef2644476c51f4cff23(
    *,
    key: builtins.str,
    name: typing.Optional[builtins.str] = None,
    optional: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__d2a5f493304f38e2b06749204c2233f60863fb580f98104b324a73426c3f8810(
    *,
    key: builtins.str,
    name: typing.Optional[builtins.str] = None,
    optional: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__baf4e3c0471ec4b2fa1df354aa463cd2af1209915d5b9f06f34ca01eaa858a81(
    *,
    key: builtins.str,
    name: typing.Optional[builtins.str] = None,
    optional: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__b35255ec2174c1336ffa23c2397f9d9d5733e2b716f7665ed12ca6cf9db5028a(
    *,
    ca: typing.Optional[typing.Union[ServiceMonitorSpecEndpointsOauth2TlsConfigCa, typing.Dict[builtins.str, typing.Any]]] = None,
    cert: typing.Optional[typing.Union[ServiceMonitorSpecEndpointsOauth2TlsConfigCert, typing.Dict[builtins.str, typing.Any]]] = None,
    insecure_skip_verify: typing.Optional[builtins.bool] = None,
    key_secret: typing.Optional[typing.Union[ServiceMonitorSpecEndpointsOauth2TlsConfigKeySecret, typing.Dict[builtins.str, typing.Any]]] = None,
    max_version: typing.Optional[ServiceMonitorSpecEndpointsOauth2TlsConfigMaxVersion] = None,
    min_version: typing.Optional[ServiceMonitorSpecEndpointsOauth2TlsConfigMinVersion] = None,
    server_name: typing.Optional[builtins.str] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__af2c136274b4b750305604f68d84680e2b4345fa24e6183a508408d0e145c5b9(
    *,
    config_map: typing.Optional[typing.Union[ServiceMonitorSpecEndpointsOauth2TlsConfigCaConfigMap, typing.Dict[builtins.str, typing.Any]]] = None,
    secret: typing.Optional[typing.Union[ServiceMonitorSpecEndpointsOauth2TlsConfigCaSecret, typing.Dict[builtins.str, typing.Any]]] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__4f733ecb9c6c03b0398a6edd3ff1d2c19f707c22fd2788dd5278e1855aa2bdf3(
    *,
    key: builtins.str,
    name: typing.Optional[builtins.str] = None,
    optional: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__85a4161d0987c009764d17cdf094ee8aea681edf01066684b6ca4493c317fab8(
    *,
    key: builtins.str,
    name: typing.Optional[builtins.str] = None,
    optional: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__3c4b20159d0c3a83579d22cb1a045729b923731d6b68744bba82d6398f242b4a(
    *,
    config_map: typing.Optional[typing.Union[ServiceMonitorSpecEndpointsOauth2TlsConfigCertConfigMap, typing.Dict[builtins.str, typing.Any]]] = None,
    secret: typing.Optional[typing.Union[ServiceMonitorSpecEndpointsOauth2TlsConfigCertSecret, typing.Dict[builtins.str, typing.Any]]] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__c6be5496dd49fe73795f886d2da410ab862f79a58637f6604655dfdcd0a87703(
    *,
    key: builtins.str,
    name: typing.Optional[builtins.str] = None,
    optional: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__9504701e5b5dfe1c5cb53e5d92098578be7ce6189cb6b716e3bea0dd87b261b8(
    *,
    key: builtins.str,
    name: typing.Optional[builtins.str] = None,
    optional: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__232c1b4dee109c8cbd78169e29345510e84988dd19ac3da3b776d00e4f8b9052(
    *,
    key: builtins.str,
    name: typing.Optional[builtins.str] = None,
    optional: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__af7ff9bf850f6229a5a446f1891c3694482531b8efb09e8e46753a797a87f74f(
    *,
    key: builtins.str,
    name: typing.Optional[builtins.str] = None,
    optional: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__2635c776631324d4d88ad60676fe0b6bf4e435f64f67f6bd98c0af6e1a54b3d7(
    *,
    action: typing.Optional[ServiceMonitorSpecEndpointsRelabelingsAction] = None,
    modulus: typing.Optional[jsii.Number] = None,
    regex: typing.Optional[builtins.str] = None,
    replacement: typing.Optional[builtins.str] = None,
    separator: typing.Optional[builtins.str] = None,
    source_labels: typing.Optional[typing.Sequence[builtins.str]] = None,
    target_label: typing.Optional[builtins.str] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__921466a7217a2e8c0331771b9a8e0d0eae5bcaaf21ce66143ab70c1574377ef4(
    value: jsii.Number,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__637b86ffabdc810a999e12c8ef0d4865b9dcb222e2b33b3127f2d5d298cb04fa(
    value: builtins.str,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__b3f61ccd8cbac6223a039c16101703c8606ce1f842334d316300d980bb74ee2d(
    *,
    ca: typing.Optional[typing.Union[ServiceMonitorSpecEndpointsTlsConfigCa, typing.Dict[builtins.str, typing.Any]]] = None,
    ca_file: typing.Optional[builtins.str] = None,
    cert: typing.Optional[typing.Union[ServiceMonitorSpecEndpointsTlsConfigCert, typing.Dict[builtins.str, typing.Any]]] = None,
    cert_file: typing.Optional[builtins.str] = None,
    insecure_skip_verify: typing.Optional[builtins.bool] = None,
    key_file: typing.Optional[builtins.str] = None,
    key_secret: typing.Optional[typing.Union[ServiceMonitorSpecEndpointsTlsConfigKeySecret, typing.Dict[builtins.str, typing.Any]]] = None,
    max_version: typing.Optional[ServiceMonitorSpecEndpointsTlsConfigMaxVersion] = None,
    min_version: typing.Optional[ServiceMonitorSpecEndpointsTlsConfigMinVersion] = None,
    server_name: typing.Optional[builtins.str] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__bd0e3bda2c9cf9f5c7ebe493483bb7890dd7b12e129f323712b0d1b5bcf35c6b(
    *,
    config_map: typing.Optional[typing.Union[ServiceMonitorSpecEndpointsTlsConfigCaConfigMap, typing.Dict[builtins.str, typing.Any]]] = None,
    secret: typing.Optional[typing.Union[ServiceMonitorSpecEndpointsTlsConfigCaSecret, typing.Dict[builtins.str, typing.Any]]] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__8f281050edbf368ccdc8635525823ea5e2a98d556fc88178a1b5496e01c1d173(
    *,
    key: builtins.str,
    name: typing.Optional[builtins.str] = None,
    optional: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__f85e562e9ea5ccc14e6f2ebb0dfa3bec9acedd855dd37e3454e187f0f3eda4ee(
    *,
    key: builtins.str,
    name: typing.Optional[builtins.str] = None,
    optional: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__cc6582fab979e22866d67d8ec9ed1ca599a28e957aa40db8821f3884224dd8c9(
    *,
    config_map: typing.Optional[typing.Union[ServiceMonitorSpecEndpointsTlsConfigCertConfigMap, typing.Dict[builtins.str, typing.Any]]] = None,
    secret: typing.Optional[typing.Union[ServiceMonitorSpecEndpointsTlsConfigCertSecret, typing.Dict[builtins.str, typing.Any]]] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__b7438f334d5518e8db9c8f8f9d7b7eae5d251d0d23c70c6c81de817a9aaca462(
    *,
    key: builtins.str,
    name: typing.Optional[builtins.str] = None,
    optional: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__e3376a030f3eeef358b5a57d83bb8f17fec010fde7f20bcf209b46ab4c63161c(
    *,
    key: builtins.str,
    name: typing.Optional[builtins.str] = None,
    optional: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__a121bd59efac998876b4760c4d96a77dbcfcab89ff8734d421528126d32553a9(
    *,
    key: builtins.str,
    name: typing.Optional[builtins.str] = None,
    optional: typing.Optional[builtins.bool] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__f3777ad0e448bbe33a35bb765a202fa80d5ee3d0645daad234080935f7a1382a(
    *,
    any: typing.Optional[builtins.bool] = None,
    match_names: typing.Optional[typing.Sequence[builtins.str]] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__e8a6779721c4ee6d73fe76af6ac8919cc90a46e9e0868081107a1c48538b6afe(
    value: jsii.Number,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__08262292237b726873c9600835533b74d887545a5ad9bbcbc287af95587f509d(
    value: builtins.str,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__75475617ce7ac77ec0e4c501cb7ce5e19effcb4debd314d1f947679b9fcba6e1(
    *,
    match_expressions: typing.Optional[typing.Sequence[typing.Union[ServiceMonitorSpecSelectorMatchExpressions, typing.Dict[builtins.str, typing.Any]]]] = None,
    match_labels: typing.Optional[typing.Mapping[builtins.str, builtins.str]] = None,
) -> None:
    """Type checking stubs"""
    pass

def _typecheckingstub__8b17baff1becd42b6823f8a48b1b57fa905d0467e143302eafd1d9d0c098db45(
    *,
    key: builtins.str,
    operator: builtins.str,
    values: typing.Optional[typing.Sequence[builtins.str]] = None,
) -> None:
    """Type checking stubs"""
    pass
