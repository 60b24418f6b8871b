import pytest

from gpu_constructs import Backend, EnvValue, GpuProfile, GpuRequest, Jellyfin, Kubernetes, Plex
from gpu_constructs.kube import pod_security
from recipe_objects import Recipe
from tables import cases

SERVERS = {one.__name__: Recipe(one, "media/server") for one in (Jellyfin, Plex)}
each_server = pytest.mark.parametrize("server", SERVERS.values(), ids=list(SERVERS))


@each_server
def test_the_default_server(server, objects, snapshot):
    assert objects(server.chart()) == snapshot
    assert f"``{server.container()['image']}``" in server.construct.__doc__


@each_server
def test_a_full_variant(server, objects, snapshot, keywords):
    assert objects(server.chart(**keywords)) == snapshot


@cases
def test_the_image_determines_paths_user_and_rights(server, image, transcode, user, level):
    given = {"image": image, "run_as_user": 7, "fs_group": 8}
    pod, env = SERVERS[server].pod(**given), SERVERS[server].env(**given)
    mounts = pod["containers"][0]["volumeMounts"]
    assert [mount["mountPath"] for mount in mounts[:2]] == ["/config", transcode]
    ids = {**pod["securityContext"], **env}
    assert {name: ids[name] for name in user} == user
    assert next(one for one in ("restricted", "baseline") if not pod_security.violations(pod, one)) == level


@cases
def test_the_container_has_the_encoder_of_its_slot(gpus, slots, capabilities):
    for server in SERVERS.values():
        container = server.container(gpus=gpus)
        assert container["resources"]["limits"]["nvidia.com/gpu"] == slots
        assert server.env(gpus=gpus)["NVIDIA_DRIVER_CAPABILITIES"] == capabilities


@each_server
def test_a_claim_of_devices_needs_no_variable(server):
    claims = GpuProfile(platform=Kubernetes(), backend=Backend.dra_claims())
    given = {"gpus": GpuRequest(resource_claim="shared"), "profile": claims}
    assert server.pod(**given)["resourceClaims"] == [{"name": "gpu", "resourceClaimName": "shared"}]
    assert "NVIDIA_DRIVER_CAPABILITIES" not in server.env(**given)


@cases
def test_media_is_read_only_and_each_claim_is_one_volume(media, mounts, sources):
    pod = SERVERS["Jellyfin"].pod(media=media)
    made = [one for one in pod["containers"][0]["volumeMounts"] if one["mountPath"].startswith("/media")]
    assert all(one.pop("readOnly") for one in made)
    assert made == mounts
    names = {one["name"] for one in mounts}
    assert [one for one in pod["volumes"] if one["name"] in names] == sources


def test_the_claim_token_of_plex_comes_from_a_secret():
    token = {"PLEX_CLAIM": EnvValue.secret("plex", key="claim")}
    assert "PLEX_CLAIM" in SERVERS["Plex"].env(env=token)


@cases
def test_the_ids_of_an_image_that_starts_as_root_have_keywords(server, image, variable):
    said = f"media/server: env['{variable}'] must be absent, because the recipe sets it: set run_as_user and fs_group"
    assert SERVERS[server].refusal(image=image, env={variable: "7"}) == said


@each_server
def test_the_error_for_impossible_options_has_a_path(server, rows):
    server.refuses(rows)
