import pytest

from gpu_constructs import Talos
from gpu_constructs.talos.config_schema import CONFIG_KEYS, DOCUMENT_KEYS, FIRST_LINE_OF, MOVED, document_kinds


@pytest.mark.parametrize(
    ("version", "number", "has", "has_not"),
    [
        ("1.10", 13, "VolumeConfig", "SwapVolumeConfig"),
        ("1.11.6", 17, "SwapVolumeConfig", "HostnameConfig"),
        ("1.12", 36, "HostnameConfig", "KubeSpanConfig"),
        ("1.13", 44, "KubeSpanConfig", "SysctlConfig"),
        ("1.14.0-rc.1", 89, "SysctlConfig", "HostnamConfig"),
    ],
)
def test_each_line_has_the_kinds_of_those_before_it_and_more(version, number, has, has_not):
    kinds = document_kinds(Talos(version))
    assert len(kinds) == len(set(kinds)) == number
    assert has in kinds
    assert has_not not in kinds


def test_what_moved_went_to_documents_of_talos_1_14():
    words = {word.rstrip(",") for documents in MOVED.values() for text in documents.values() for word in text.split()}
    kinds = {word for word in words if word[0].isupper()}
    assert kinds <= set(FIRST_LINE_OF)
    assert set(DOCUMENT_KEYS) <= kinds
    assert all(set(names) < set(CONFIG_KEYS[level]) for level, names in MOVED.items())
