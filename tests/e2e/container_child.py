"""What runs between the test and a program in a container: it makes the container, and then becomes the program.

It runs alone, so it imports nothing of the suite. ``hold`` makes the namespaces of a node or of a pod, and keeps them.
``run`` starts a program in them, passes signals on to it, and ends with its exit status.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from typing import Any

_MS_RDONLY, _MS_REMOUNT, _MS_BIND, _MS_REC = 0x1, 0x20, 0x1000, 0x4000
_PROPAGATION = {"private": 1 << 18, "slave": 1 << 19, "shared": 1 << 20}
_CLONE_NEWNS, _CLONE_NEWPID = 0x20000, 0x20000000
_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 24, 38
_CAPABILITY_VERSION_3 = 0x20080522
_PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)

_libc = ctypes.CDLL(None, use_errno=True)


def hold(root: str) -> None:
    """Make a PID namespace, and with a root a mount namespace where what is mounted under it is seen by all."""
    _call("unshare", _CLONE_NEWPID | (_CLONE_NEWNS if root else 0))
    if root:
        _mount("/", flags=_MS_REC | _PROPAGATION["private"])
        _mount(root, root, flags=_MS_BIND)
        _mount(root, flags=_PROPAGATION["shared"])
        for folder, _, files in os.walk(f"{root}/dev"):
            for name in files:
                # Any character device will do.
                _mount("/dev/null", f"{folder}/{name}", flags=_MS_BIND)
    if os.fork() == 0:
        _call("prctl", _PR_SET_PDEATHSIG, signal.SIGKILL)
        # The first process of the namespace collects the orphans.
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        print("ready", flush=True)
        while True:
            signal.pause()
    os.wait()


def run(plan: dict[str, Any]) -> int:
    """Run the program of a container, and return its exit status."""
    pid_namespace = os.open(plan["pid_namespace"], os.O_RDONLY) if plan["pid_namespace"] else None
    mount_namespace = os.open(plan["mount_namespace"], os.O_RDONLY)
    _call("setns", mount_namespace, _CLONE_NEWNS)
    if pid_namespace is None:
        _call("unshare", _CLONE_NEWPID)
    else:
        _call("setns", pid_namespace, _CLONE_NEWPID)
    child = os.fork()
    if child == 0:
        try:
            _become(plan)
        except OSError as error:
            print(f"cannot start {plan['argv'][0]}: {error}", flush=True)
            os._exit(127)
    for number in _PASSED_ON:
        signal.signal(number, lambda one, _: os.kill(child, one))
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return status if status >= 0 else 128 - status


def _become(plan: dict[str, Any]) -> None:
    _call("unshare", _CLONE_NEWNS)
    root = plan["root"]
    _mount("tmpfs", root, kind="tmpfs", data="mode=0755")
    for folder in ("proc", "sys", "dev", "tmp", "etc"):
        os.mkdir(f"{root}/{folder}", 0o1777 if folder == "tmp" else 0o755)
    for name, target in plan["links"].items():
        os.makedirs(os.path.dirname(root + name), exist_ok=True)
        os.symlink(target, root + name)
    _mount("proc", f"{root}/proc", kind="proc")
    _mount("tmpfs", f"{root}/dev", kind="tmpfs", data="mode=0755")
    for one in plan["mounts"]:
        _bind(root, **one)
    if plan["read_only"]:
        _mount(root, flags=_MS_REMOUNT | _MS_BIND | _MS_RDONLY)
    with open("/proc/sys/kernel/cap_last_cap", encoding="utf-8") as file:
        known = range(int(file.read()) + 1)
    # Python ignores it, and programs would inherit that.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.chroot(root)
    os.chdir(plan["folder"])
    _drop(plan, known)
    os.execvpe(plan["argv"][0], plan["argv"], plan["environment"])


def _bind(root: str, source: str, target: str, *, read_only: bool, propagation: str) -> None:
    place = root + target
    if source == "tmpfs":
        os.makedirs(place, exist_ok=True)
        _mount("tmpfs", place, kind="tmpfs", data="mode=1777")
        return
    if not os.path.lexists(place):
        if os.path.isdir(source):
            os.makedirs(place)
        else:
            os.makedirs(os.path.dirname(place), exist_ok=True)
            open(place, "w", encoding="utf-8").close()
    _mount(source, place, flags=_MS_BIND | _MS_REC)
    if propagation != "shared":
        _mount(place, flags=_MS_REC | _PROPAGATION[propagation])
    if read_only:
        _mount(place, flags=_MS_REMOUNT | _MS_BIND | _MS_RDONLY)


def _drop(plan: dict[str, Any], known: range) -> None:
    """Leave the process what its security context leaves it; without a list of capabilities that is all we hold."""
    kept = known if plan["capabilities"] is None else plan["capabilities"]
    for number in set(known) - set(kept):
        _call("prctl", _PR_CAPBSET_DROP, number, 0, 0, 0)
    os.setgroups(plan["groups"])
    os.setresgid(plan["group"], plan["group"], plan["group"])
    os.setresuid(plan["user"], plan["user"], plan["user"])
    if plan["user"] == 0 and plan["capabilities"] is not None:
        bits = sum(1 << number for number in kept)
        low, high = bits & 0xFFFFFFFF, bits >> 32
        header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
        # Effective, permitted, inheritable; twice, for the lower and the upper half.
        _call("capset", header, (ctypes.c_uint32 * 6)(low, low, 0, high, high, 0))
    if plan["no_new_privileges"]:
        _call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    # Last: a change of the user takes it back.
    _call("prctl", _PR_SET_PDEATHSIG, signal.SIGKILL)


def _mount(source: str, target: str | None = None, *, kind: str = "", flags: int = 0, data: str = "") -> None:
    place = source if target is None else target
    _call("mount", source.encode(), place.encode(), kind.encode() or None, ctypes.c_ulong(flags), data.encode() or None)


def _call(name: str, *args: Any) -> None:
    if getattr(_libc, name)(*args) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}", str(args))


if __name__ == "__main__":
    if sys.argv[1] == "hold":
        hold(sys.argv[2])
    else:
        with open(sys.argv[2], encoding="utf-8") as plan_file:
            given = json.load(plan_file)
        sys.exit(run(given))
