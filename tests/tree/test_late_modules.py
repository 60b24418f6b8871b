"""Tests that the import of this library leaves out modules that few programs use, and that they work as before."""

import os
import subprocess
import sys


def printed(program: str, **environment: str) -> str:
    given = {**os.environ, "GPU_CONSTRUCTS_KERNEL": "", **environment}
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=given).stdout


def test_all_public_names_are_imported_without_large_modules_of_the_standard_library():
    large = "{'asyncio', 'cattrs', 'dateutil.tz', 'multiprocessing', 'ssl', 'unittest', 'urllib.request'}"
    assert printed(f"import sys\nfrom gpu_constructs import *\nprint(sorted({large} & sys.modules.keys()))") == "[]\n"


LATE = """
import gpu_constructs, cdk8s, sys
before = "dateutil.parser._parser" in sys.modules
import dateutil.parser
from dateutil.parser import isoparse
print(before, dateutil.parser.isoparse("2026-01-02"), isoparse("2026-01-02").year)
"""


def test_a_program_can_use_a_module_that_jsii_did_not_need():
    assert printed(LATE) == "False 2026-01-02 00:00:00 2026\n"


MOCKED = """
import gpu_constructs, cdk8s, typeguard
from unittest.mock import Mock
typeguard.check_type("it", Mock(), int)
try:
    typeguard.check_type("it", "text", int)
except TypeError as error:
    print(error)
"""


def test_typeguard_still_accepts_a_mock():
    assert printed(MOCKED) == "type of it must be int; got str instead\n"


CALLS = [
    "Chart(app, 3)",
    "Chart(None, 'chart')",
    "Chart('app', 'chart')",
    "Chart(app, 'chart', namespace=True)",
    "Chart(app, 'chart', labels='a=b')",
    "Chart(app, 'chart', disable_resource_name_hashes='no')",
    "Chart(app, type('Text', (str,), {})('chart')).node.id",
    "ApiObject(chart, 'one', api_version='v1', kind=None)",
    "ApiObject(chart, 'one', api_version='v1', kind='Secret', metadata=3)",
    "ApiObject(chart, 'one', api_version='v1', kind='Secret', metadata={'name': 3})",
    "ApiObjectMetadata(name='one', finalizers=['a', 3])",
    "chart.add_dependency('other')",
]
CALLED = f"""
import gpu_constructs
from cdk8s import *
for call in {CALLS}:
    app = App()
    chart = Chart(app, "given")
    try:
        print(call, eval(call))
    except (TypeError, RuntimeError) as error:
        print(call, type(error), error)
"""


def test_an_argument_of_cdk8s_is_accepted_or_refused_as_without_this_library():
    assert printed(CALLED) == printed(CALLED, GPU_CONSTRUCTS_KERNEL="stock")
