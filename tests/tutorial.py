"""The tutorial, played: its programs are saved, its commands run in order, and each output is put below its commands.

``python tests/tutorial.py`` writes the outputs into the page. With ``--install``, it also runs the installation as
written, and fails if the page shows anything else.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import dist

PAGE = dist.ROOT / "docs" / "tutorial.md"
PROJECT = "my-cluster"
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
_SET_BY_TESTS = {"CDK8S_OUTDIR", "GPU_CONSTRUCTS_STRICT", "PYTHONPATH"}
# With these, ``uv pip`` installs into the environment of this process, not into the one of the project.
_SET_BY_UV = {"UV_INTERNAL__PARENT_INTERPRETER", "VIRTUAL_ENV"}
_GIT = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"} | {
    f"GIT_{who}_{what}": "reader@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}


def played(folder: Path, *, install: bool) -> str:
    """Return the page with the outputs of its commands; without ``install``, the library is that of this process."""
    (folder / "gpu-constructs").symlink_to(dist.ROOT)
    environment = {name: value for name, value in os.environ.items() if name not in _SET_BY_TESTS | _SET_BY_UV} | _GIT
    own, ours = folder / PROJECT / ".venv" / "bin", Path(sys.executable).parent
    # ``uv run`` names its program here, even if that is not on the PATH.
    uv = Path(environment.get("UV", sys.executable)).parent
    environment["PATH"] = os.pathsep.join(map(str, [own, ours, uv, environment["PATH"]]))
    if not install:
        environment["PYTHONPATH"] = str(dist.ROOT)
    output = ""

    def play(block: re.Match[str]) -> str:
        nonlocal output
        language, text = block.groups()
        project = folder / PROJECT
        if language == "python":
            (project / "app.py").write_text(text, encoding="utf-8")
        elif language == "bash" and not text.startswith("kubectl") and (install or "pip install" not in text):
            ran = subprocess.run(
                ["bash", "-c", text],
                cwd=project if project.exists() else folder,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            output = ran.stdout
            is_to_fail = "nothing was written" in output
            if (ran.returncode != 0) != is_to_fail:
                raise RuntimeError(f"{text}{output}")
        return f"```text\n{output}```" if language == "text" else block[0]

    return _FENCE.sub(play, PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        found, shown = played(Path(scratch), install="--install" in sys.argv), PAGE.read_text(encoding="utf-8")
    if "--install" not in sys.argv:
        PAGE.write_text(found, encoding="utf-8")
    elif found != shown:
        sys.exit("docs/tutorial.md shows other outputs than its commands print")
