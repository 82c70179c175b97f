"""Operations: results against PyTorch where it is installed, derivatives against differences."""

import pytest


@pytest.fixture
def rl():
    import rushlight

    return rushlight
