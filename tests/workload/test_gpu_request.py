import warnings

from gpu_constructs import GpuRequest
from gpu_constructs.catalog.gpu_models import GPU_MODELS, known_board, product_label
from refusals import check_refusals
from tables import cases


def test_any_single_gpu_is_the_default():
    request = GpuRequest()
    assert (request.count, request.selects) == (1, False)
    assert (request.families, request.min_mib, request.compute_capability) == ((), None, None)


@cases
def test_budgets_become_annotations(wishes, annotations):
    assert GpuRequest(**wishes).annotations == annotations


@cases
def test_memory_is_rounded_up_to_mebibytes(quantity, mebibytes):
    assert GpuRequest(min_vram=quantity).min_mib == mebibytes


@cases
def test_a_board_has_the_name_of_its_node_label(product, label):
    assert product_label(product) == label


def test_a_profile_in_the_spelling_of_a_resource_is_the_same_profile():
    assert GpuRequest(mig_profile="1g.10gb.me") == GpuRequest(mig_profile="1g.10gb+me")


def test_requests_that_a_board_can_satisfy_are_accepted(rows):
    for (given,) in rows:
        GpuRequest(**given)


def test_requests_that_no_board_can_satisfy_are_rejected(rows):
    check_refusals(GpuRequest, rows)


@cases
def test_the_warning_for_an_unknown_board_names_the_nearest_ones(product, near):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        GpuRequest(products=["NVIDIA L4", product])
    assert [near is not None] == [bool(told)]
    for one in told:
        assert str(one.message).startswith(f"request.products[1] {product!r} is not the name of a known board")
        assert near in str(one.message)
        assert one.filename == __file__


def test_no_two_boards_have_the_same_spelling():
    assert [known_board(name) for name in GPU_MODELS] == list(GPU_MODELS.values())
    assert [known_board(product_label(name).casefold()) for name in GPU_MODELS] == list(GPU_MODELS.values())


@cases
def test_all_spellings_of_a_mig_profile_give_its_size(given, size):
    assert GpuRequest(**given).mig_size == size
