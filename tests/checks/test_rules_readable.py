from gpu_constructs.facts.app import Facts

POD = {"metadata": {"name": "x"}, "spec": {}}


def kinds(written):
    return [(one["apiVersion"], one["kind"]) for one in Facts([written]).objects]


def listed(kind, *items, api_version="v1", **metadata):
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "items": list(items)}


def test_items_of_a_typed_list_have_its_kind():
    assert kinds(listed("DeploymentList", POD, POD, api_version="apps/v1")) == [("apps/v1", "Deployment")] * 2
    assert kinds(listed("PodList", POD, {**POD, "apiVersion": "v1", "kind": "Pod"}, resourceVersion="1")) == [
        ("v1", "Pod"),
        ("v1", "Pod"),
    ]


def test_items_of_an_untyped_list_state_their_kind():
    assert kinds(listed("List", {**POD, "apiVersion": "apps/v1", "kind": "Deployment"}, POD)) == [
        ("apps/v1", "Deployment")
    ]


def test_nested_lists_become_objects():
    inner = listed("JobList", POD, api_version="batch/v1")
    assert kinds(listed("List", inner)) == [("batch/v1", "Job")]


def test_an_object_whose_kind_ends_in_list_stays_an_object(rows):
    for (written,) in rows:
        assert kinds(written) == [(written["apiVersion"], written["kind"])], written


def test_items_that_are_not_objects_are_dropped():
    for rubbish in [None, 3, "x", [], {"kind": 3}]:
        good = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}}
        assert len(kinds(listed("DeploymentList", rubbish, good, api_version="apps/v1"))) == 1, rubbish
