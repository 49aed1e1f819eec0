"""Its presence puts this folder on the import path of all tests below it (builders such as `cause_cases`)."""

import pytest
from hypothesis import HealthCheck, settings

# The same cases on every machine and no time limit on one of them: two cores may be shared by many.
settings.register_profile("house", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")

OPEN = (
    "test_a11_", "test_a40_", "test_a51_", "test_a63_", "test_a06_", "test_a16_", "test_a30_", "test_a59_",


    "test_pages_name_only_commands_and_files_that_exist", "test_what_is_no_log_is_called_by_its_name", "test_an_unknown_text_names_the_readers_tried",
    "test_imports_point_down_the_layers", "test_however_it_is_laid_out_the_table_is_the_same[Training of model x",
)  # fmt: skip
"""Known faults, each with its test. The list must become empty."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Report the known faults as such."""
    for item in items:
        if item.name.startswith(OPEN):
            item.add_marker(pytest.mark.xfail(reason="known fault, see OPEN in tests/conftest.py", strict=False))
