"""A workload that always serves HTTP."""

from __future__ import annotations

from typing import cast

from cdk8s import ApiObject

from gpu_constructs.workload.workload import GpuWorkload


class HttpServer(GpuWorkload):
    """A workload with a Service and a port named ``http``."""

    @property
    def service(self) -> ApiObject:
        """The Service in front of the pods."""
        return cast(ApiObject, super().service)

    @property
    def url(self) -> str:
        """The URL that other pods of the cluster reach the server at."""
        return cast(str, super().url)
