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


def test_every_duration_arrives():
    probe = Probe.tcp_socket(
        1, initial_delay_seconds=7, period_seconds=8, timeout_seconds=9, failure_threshold=10
    ).to_manifest()
    assert probe == {
        "tcpSocket": {"port": 1},
        "initialDelaySeconds": 7,
        "periodSeconds": 8,
        "timeoutSeconds": 9,
        "failureThreshold": 10,
    }


@pytest.mark.parametrize("field", ["period_seconds", "timeout_seconds", "failure_threshold"])
def test_a_number_below_one_is_refused(field):
    assert message(lambda: Probe.tcp_socket(1, **{field: 0})) == f"probe.{field} must be at least 1, got 0"


def test_a_negative_delay_is_refused():
    expected = "probe.initial_delay_seconds must be at least 0, got -1"
    assert message(lambda: Probe.tcp_socket(1, initial_delay_seconds=-1)) == expected


def test_a_number_of_another_type_is_refused():
    assert message(lambda: Probe.tcp_socket(1, period_seconds=True)) == (
        "probe.period_seconds must be an int, got True (bool)"
    )
    assert message(lambda: Probe.tcp_socket(1, period_seconds="5")) == "probe.period_seconds must be int; got str: '5'"


@pytest.mark.parametrize(
    ("port", "says"),
    [
        (0, "must be at least 1, got 0"),
        (65536, "must be at most 65535, got 65536"),
        (True, "must be an int, got True (bool)"),
        (None, "must be an int, got None (NoneType)"),
        (8.5, "must be an int, got 8.5 (float)"),
    ],
)
def test_a_port_that_cannot_be_is_refused(port, says):
    assert message(lambda: Probe.tcp_socket(port)) == f"probe port {says}"
    assert message(lambda: Probe.http_get("/", port=port)) == f"probe port {says}"


def test_a_name_that_no_port_can_have_is_refused():
    assert message(lambda: Probe.tcp_socket("HTTP")).startswith("probe port must be ")


def test_a_path_starts_at_the_root():
    assert message(lambda: Probe.http_get("health", port=1)) == "probe path must start with '/'; got 'health'"


def test_a_command_is_a_list_and_no_text():
    assert message(lambda: Probe.exec("cat /ready")) == "probe command must be a list, got 'cat /ready' (str)"
    assert message(lambda: Probe.exec(["cat", 5])) == "probe command[1] must be str; got int: 5"


@pytest.mark.parametrize("path", [None, 5, b"/"])
def test_a_path_of_another_type_is_refused(path):
    assert message(lambda: Probe.http_get(path, port=1)).startswith("probe path must be str")


def test_a_command_that_runs_nothing_is_refused():
    assert message(lambda: Probe.exec([])).startswith("probe command must ")
