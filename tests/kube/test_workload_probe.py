import pytest

from gpu_constructs import GpuConstructsError, Probe

DEFAULTS = {"initialDelaySeconds": None, "periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 3}


def message(make):
    with pytest.raises(GpuConstructsError) as refused:
        make()
    return str(refused.value)


@pytest.mark.parametrize(
    ("probe", "check"),
    [
        (Probe.http_get("/health", port="http"), {"httpGet": {"path": "/health", "port": "http"}}),
        (Probe.http_get("/", port=8080), {"httpGet": {"path": "/", "port": 8080}}),
        (Probe.tcp_socket(8080), {"tcpSocket": {"port": 8080}}),
        (Probe.tcp_socket("http"), {"tcpSocket": {"port": "http"}}),
        (Probe.exec(["cat", "/ready"]), {"exec": {"command": ["cat", "/ready"]}}),
        (Probe.exec(("true",)), {"exec": {"command": ["true"]}}),
    ],
    ids=["http-name", "http-number", "tcp-number", "tcp-name", "exec-list", "exec-tuple"],
)
def test_a_check_is_written_with_a_timeout_that_a_busy_host_can_keep(probe, check):
    assert probe.to_manifest() == {**check, **DEFAULTS}


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: Probe.tcp_socket(1, period_seconds=0), "probe.period_seconds must be at least 1, got 0"),
        (lambda: Probe.tcp_socket(1, timeout_seconds=0), "probe.timeout_seconds must be at least 1, got 0"),
        (lambda: Probe.tcp_socket(1, failure_threshold=0), "probe.failure_threshold must be at least 1, got 0"),
        (lambda: Probe.tcp_socket(1, period_seconds=True), "probe.period_seconds must be an int, got True (bool)"),
        (lambda: Probe.tcp_socket(1, initial_delay_seconds=-1), "probe.initial_delay_seconds must be at least 0"),
        (lambda: Probe.tcp_socket(0), "probe port must be at least 1, got 0"),
        (lambda: Probe.http_get("/", port=65536), "probe port must be at most 65535, got 65536"),
        (lambda: Probe.tcp_socket(None), "probe port must be an int, got None (NoneType)"),
        (lambda: Probe.tcp_socket("HTTP"), "probe port must be a port name"),
        (lambda: Probe.http_get("health", port=1), "probe path must start with '/'; got 'health'"),
        (lambda: Probe.http_get(None, port=1), "probe path must be str"),
        (lambda: Probe.exec("cat /ready"), "probe command must be a list, got 'cat /ready' (str)"),
        (lambda: Probe.exec(["cat", 5]), "probe command[1] must be str; got int: 5"),
        (lambda: Probe.exec([]), "probe command must name a program; got an empty list"),
    ],
)
def test_a_probe_that_could_not_ask_is_refused(make, problem):
    assert message(make).startswith(problem)
