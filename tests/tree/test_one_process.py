import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gpu_constructs

PROCESSES = """
import os
from gpu_constructs import App
App().charts

def below(pid):
    for child in open(f"/proc/{pid}/task/{pid}/children").read().split():
        yield child
        yield from below(child)

print(len([*below(os.getpid())]))
"""
PROGRAMS = {
    "an error of JavaScript": """
from gpu_constructs import Testing
from cdk8s import ApiObject, JsonPatch
chart = Testing.chart()
ApiObject(chart, "a", api_version="v1", kind="ConfigMap").add_json_patch(JsonPatch.remove("/spec/none"))
Testing.synth(chart)
""",
    "messages of jsii for debugging": """
import os
os.environ["JSII_DEBUG"] = "1"
from gpu_constructs import Testing
print(len(Testing.synth(Testing.chart())))
""",
    "a program that ends early": "from gpu_constructs import App\nApp()\nraise SystemExit(7)\n",
    "output and warnings of JavaScript": """
import os
os.environ["NODE_OPTIONS"] = "--require ./prints.js"
from gpu_constructs import App
print(App(outdir="x").outdir, flush=True)
""",
}
INTERRUPTED = """
from gpu_constructs import App
import os, signal
App()
os.killpg(0, signal.SIGINT)
App()
"""
PRINTS = """
if (!process.argv[1].includes('runtime')) setTimeout(() => {
  console.log('text of console.log');
  console.error('text of console.error');
  process.stdout.write(Uint8Array.of(65, 66, 10));
  process.emitWarning('text of a warning');
}, 0);
"""
ENDS = "if (!process.argv[1].includes('runtime')) setTimeout(() => { throw new Error('broken'); }, 0);"


def shown(program, folder, **variables):
    """Return the exit status of a program, and its output without numbers of processes and names of folders."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("JSII_", "GPU_CONSTR"))}
    environment |= {"PYTHONPATH": str(Path(gpu_constructs.__file__).parents[1]), **variables}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
        start_new_session=True,
    )
    shown_err = re.sub(r"node:\d+|/tmp/[\w./-]+|[\d.]+(?= ?ms)", "", done.stderr)
    return done.returncode, done.stdout, shown_err


def test_jsii_runs_in_one_process_unless_its_own_entry_point_is_wanted(tmp_path):
    assert shown(PROCESSES, tmp_path) == (0, "1\n", "")
    assert shown(PROCESSES, tmp_path, GPU_CONSTRUCTS_KERNEL="node") == (0, "1\n", "")
    assert shown(PROCESSES, tmp_path, GPU_CONSTRUCTS_KERNEL="stock") == (0, "2\n", "")
    unknown = "from gpu_constructs.tree import kernel\nkernel.RELEASES = frozenset()\n" + PROCESSES
    assert shown(unknown, tmp_path) == (0, "2\n", "")


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_shows_the_same_with_one_process_as_with_the_entry_point_of_jsii(tmp_path, name):
    (tmp_path / "prints.js").write_text(PRINTS)
    stock = shown(PROGRAMS[name], tmp_path, GPU_CONSTRUCTS_KERNEL="stock")
    assert shown(PROGRAMS[name], tmp_path, GPU_CONSTRUCTS_KERNEL="node") == stock
    assert len(stock[1] + stock[2]) > 10 or stock[0] == 7


@pytest.mark.parametrize("kernel", ["node", "stock"])
def test_an_error_that_ends_node_is_shown(tmp_path, kernel):
    (tmp_path / "prints.js").write_text(ENDS)
    status, _, err = shown(PROGRAMS["output and warnings of JavaScript"], tmp_path, GPU_CONSTRUCTS_KERNEL=kernel)
    assert (status, "Error: broken" in err) == (1, True)


@pytest.mark.parametrize("kernel", ["", "node", "stock"])
def test_an_interrupted_program_ends_with_the_signal(tmp_path, kernel):
    status, _, err = shown(INTERRUPTED, tmp_path, GPU_CONSTRUCTS_KERNEL=kernel)
    assert (status, "KeyboardInterrupt" in err) == (-2, True)
