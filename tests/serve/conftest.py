"""Model files, and a client of a server of one of them."""

import pytest
from served import client, save_model


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    save_model(folder / "linear.rw")
    save_model(folder / "other.rw", seed=1)
    save_model(folder / "trees.rw", "lambdamart", n_estimators=5, num_leaves=4)
    return folder


@pytest.fixture
def web(files):
    return client(f"web={files / 'linear.rw'}")
