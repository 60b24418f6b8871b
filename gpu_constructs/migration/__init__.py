"""Conversion of Helm values into keyword arguments of constructs such as `DevicePluginChart`."""
