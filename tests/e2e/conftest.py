"""Fixtures of the end-to-end suite: a control plane for each run, nodes that end with each test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

import assets

if TYPE_CHECKING:
    from cluster import Cluster
    from control_plane import Access, Admission
    from kubelet import Kubelets
    from namespaces import Namespaces


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Collect this folder only if its tests are asked for: what it imports is not installed otherwise."""
    return None if assets.are_asked_for(str(config.option.markexpr)) or collection_path.name == "conftest.py" else True


def pytest_configure(config: pytest.Config) -> None:
    """Declare the markers of this folder that its tests write."""
    config.addinivalue_line("markers", "since(minor): about an API that older releases of Kubernetes do not serve")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark all tests of this folder: ``e2e``, and ``nvidia`` those that need NVIDIA's programs.

    Those of an API that the release does not serve are left out, and pytest counts them as deselected.
    """
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.e2e)
            if "nvidia" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.nvidia)
    unserved = [item for item in items if _is_unserved(item)]
    if unserved:
        config.hook.pytest_deselected(items=unserved)
        items[:] = [item for item in items if item not in unserved]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """End what the tests of a module share before one of them runs a second time: it starts as the first one did."""
    if getattr(item, "execution_count", 1) > 1:
        assert isinstance(item, pytest.Function)
        for found in item._fixtureinfo.name2fixturedefs.values():
            for fixture in found:
                if fixture.scope == "module":
                    fixture.finish(item._request)


def _is_unserved(item: pytest.Item) -> bool:
    since, callspec = item.get_closest_marker("since"), getattr(item, "callspec", None)
    release = None if callspec is None else callspec.params.get("release")
    return since is not None and release is not None and release.minor < since.args[0]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test of a control plane on each chosen release."""
    if "release" in metafunc.fixturenames:
        found = _releases()
        metafunc.parametrize("release", found, ids=[each.version for each in found], scope="session")
    if "nvidia" in metafunc.fixturenames and assets.needs_nvidia(str(metafunc.config.option.markexpr)):
        both = assets.nvidia()
        metafunc.parametrize("nvidia", both, ids=[each.version for each in both], scope="session")


def _releases() -> Sequence[assets.Kubernetes]:
    if assets.has_own_cluster():
        import own_cluster

        return [own_cluster.release()]
    return assets.chosen()


class Sites:
    """Clusters that are started when a test first needs them, and used by all later ones."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._stack = folder, ExitStack()
        self._started: dict[tuple[str, str], Site] = {}

    def site(self, release: assets.Kubernetes, admission: Admission) -> Site:
        """Return the cluster of a release with an admission configuration."""
        key = (release.version, "own" if assets.has_own_cluster() else admission)
        if key not in self._started:
            folder = self._folder / "-".join(key)
            self._started[key] = self._stack.enter_context(self._opened(release, admission, folder))
        return self._started[key]

    @contextmanager
    def _opened(self, release: assets.Kubernetes, admission: Admission, folder: Path) -> Iterator[Site]:
        from control_plane import control_plane

        if assets.has_own_cluster():
            import own_cluster

            try:
                with opened(own_cluster.access(folder), own_cluster.namespaces()) as site:
                    yield site
            except assets.AssetsError as error:
                pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)
        else:
            with control_plane(release, folder, admission=admission) as plane, opened(plane.access) as site:
                yield site

    def close(self) -> None:
        """End all clusters."""
        self._stack.close()


class Site(NamedTuple):
    """A cluster with the stand-in for its kubelets."""

    cluster: Cluster
    kubelets: Kubelets


@contextmanager
def opened(access: Access, names: Namespaces | None = None) -> Iterator[Site]:
    """Prepare a cluster for tests, and end what runs beside it."""
    from cluster import Cluster, eventually
    from kubelet import DEFAULT_STORAGE_CLASS, Kubelets

    with closing(Cluster(access, names)) as cluster:
        prepared = [DEFAULT_STORAGE_CLASS]
        if names is not None:
            from own_cluster import require_no_others

            require_no_others(cluster)
            prepared.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
        cluster.apply(*prepared)
        cluster.remember()
        kubelets = Kubelets(cluster.twin())
        kubelets.start()
        try:
            yield Site(cluster, kubelets)
        finally:
            kubelets.stop()
            for manifest in prepared:
                cluster.delete(manifest)
            eventually(lambda: not any(map(cluster.has, prepared)), "the cluster is as it was", timeout=60)


@pytest.fixture(scope="session")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    all_of_them = Sites(tmp_path_factory.mktemp("clusters"))
    yield all_of_them
    all_of_them.close()


@pytest.fixture
def site(sites: Sites, release: assets.Kubernetes) -> Iterator[Site]:
    """A cluster with the admission configuration of Talos; what a test leaves there is deleted."""
    yield from _used(sites.site(release, "talos"))


@pytest.fixture
def plain_site(sites: Sites, release: assets.Kubernetes) -> Iterator[Site]:
    """A cluster with the admission configuration of Kubernetes."""
    yield from _used(sites.site(release, "plain"))


@pytest.fixture
def cluster(site: Site) -> Cluster:
    return site.cluster


@pytest.fixture
def kubelets(site: Site) -> Kubelets:
    return site.kubelets


def _used(site: Site) -> Iterator[Site]:
    yield site
    site.cluster.reset()
    site.kubelets.forget()
