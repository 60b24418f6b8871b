import pytest

from gpu_constructs import GpuConstructsError
from gpu_constructs.talos.kernel_module import KernelModule, module_key


def test_parameters_are_written_where_there_are_any():
    assert KernelModule(name="nvidia").to_dict() == {"name": "nvidia"}
    assert KernelModule(name="gdrdrv", parameters=["dbg_enabled=0", "quick"]).to_dict() == {
        "name": "gdrdrv",
        "parameters": ["dbg_enabled=0", "quick"],
    }


def test_the_kernel_takes_dash_and_underscore_for_the_same():
    assert module_key("nvidia-uvm") == module_key("nvidia_uvm")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"name": "nvidia.ko.xz"}, "kernel_module.name must be a module's name (letters, digits, '_', '-'); got"),
        ({"name": ""}, "kernel_module.name must be a module's name"),
        ({"name": "a", "parameters": ["a=1 b=2"]}, "kernel_module.parameters must hold one 'name=value' in each item"),
        ({"name": "a", "parameters": "a=1"}, "kernel_module.parameters must be a list, got 'a=1' (str)"),
    ],
)
def test_what_the_kernel_would_not_take_is_refused(given, message):
    with pytest.raises(GpuConstructsError) as refused:
        KernelModule(**given)
    assert str(refused.value).startswith(message)
