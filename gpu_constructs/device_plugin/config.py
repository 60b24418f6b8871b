"""The file the device plugin and GPU Feature Discovery both read (``CONFIG_FILE``).

Source: NVIDIA/k8s-device-plugin@v0.20.0:api/config/v1.
"""

from __future__ import annotations

from typing import Any, Literal

from gpu_constructs.sharing import Sharing

MigStrategy = Literal["none", "single", "mixed"]

CONFIG_FILE = "/config/config.yaml"


def plugin_config(*, sharing: Sharing, mig_strategy: MigStrategy) -> dict[str, Any]:
    """Give the configuration as the plugin's ``version: v1`` document.

    Only what both programs must agree on stands here: settings of one program travel in its environment, and
    none stands in both places, since the environment would win without a word.
    """
    document: dict[str, Any] = {"version": "v1", "flags": {"migStrategy": mig_strategy}}
    if sharing.strategy == "time-slicing":
        document["sharing"] = {
            "timeSlicing": {
                "renameByDefault": sharing.rename_by_default,
                "failRequestsGreaterThanOne": sharing.fail_requests_greater_than_one,
                "resources": [{"name": "nvidia.com/gpu", "replicas": sharing.replicas}],
            }
        }
    return document
