"""Model texts of RankLib: what is read, and the sentence for everything that is wrong."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwright.errors import DataError
from rankwright.ranklib.model_text import parse_model_text, read_model_text, write_model_text

TREE = """## LambdaMART
## No. of trees = 1

<ensemble>
	<tree id="1" weight="0.5">
		<split>
			<feature> 2 </feature>
			<threshold> 0.25 </threshold>
			<split pos="left">
				<output> -1.0 </output>
			</split>
			<split pos="right">
				<output> 3.0 </output>
			</split>
		</split>
	</tree>
</ensemble>
"""
NET = """## RankNet
## Epochs = 1
## No. of features = 2
## No. of hidden layers = 1
## Layer 1: 1 neurons
1 3
1
1
0 0 2.0
0 1 -1.0
0 2 0.5 0.25
1 0 4.0
"""
X = np.array([[1.0, 0.25, 2.0], [0.0, 0.5, -1.0]])


def sigmoid(z):
    return 1.0 / (1.0 + np.exp(-z))


def test_a_tree_goes_left_up_to_its_threshold():
    np.testing.assert_array_equal(parse_model_text(TREE).scores(X), [-0.5, 1.5])


def test_a_forest_is_the_mean_of_its_ensembles():
    block = TREE.partition("\n\n")[2]
    forest = f"## Random Forests\n\n{block}\n{block.replace('3.0', '7.0')}"
    np.testing.assert_array_equal(parse_model_text(forest).scores(X), [-0.5, (1.5 + 3.5) / 2])


def test_a_tree_may_be_one_leaf():
    leaf = '<tree id="1" weight="1.0"><split><output> 2 </output></split></tree>'
    text = f"## MART\n<ensemble>{leaf}</ensemble>"
    np.testing.assert_array_equal(parse_model_text(text).scores(X), [2.0, 2.0])


def test_linear_weights_with_a_constant():
    text = "## Linear Regression\n## Lambda = 1.0E-10\n0:0.5 1:2.0 3:-1.0"
    np.testing.assert_array_equal(parse_model_text(text).scores(X), [0.5, 1.5])


def test_a_feature_of_adarank_may_come_back():
    text = "## AdaRank\n1:2.0 3:1.0 1:1.0"
    np.testing.assert_array_equal(parse_model_text(text).scores(X), [5.0, -1.0])


def test_a_step_of_rankboost_holds_above_its_threshold():
    text = "## RankBoost\n2:0.25:2.0 3:-2.0:1.0"
    np.testing.assert_array_equal(parse_model_text(text).scores(X), [1.0, 3.0])


def test_a_network_has_sigmoids_and_its_constants_in_the_last_neuron_of_the_input():
    hidden = sigmoid(2.0 * X[:, 0] - X[:, 2] + 0.5)
    np.testing.assert_allclose(parse_model_text(NET).scores(X), sigmoid(4.0 * hidden + 0.25))


def test_listnet_is_a_network_without_hidden_layers():
    text = "## ListNet\n## Epochs = 1\n## No. of features = 2\n1 2\n0\n0 0 1.0\n0 1 2.0\n0 2 -1.0\n"
    wanted = sigmoid(X[:, 0] + 2.0 * X[:, 1] - 1.0)
    np.testing.assert_allclose(parse_model_text(text).scores(X), wanted)


def test_features_are_float32_whatever_the_data_has():
    text = TREE.replace("0.25", "0.7")
    assert float(np.float32(0.7)) < 0.7
    np.testing.assert_array_equal(parse_model_text(text).scores(np.array([[0.0, 0.7]])), [-0.5])


def test_features_beyond_the_data_and_missing_ones_are_zero():
    text = "## AdaRank\n1:1.0 7:5.0"
    np.testing.assert_array_equal(
        parse_model_text(text).scores(np.array([[np.nan], [2.0]])), [0, 2]
    )


@pytest.mark.parametrize("text", [TREE, NET, "## RankBoost\n## Iteration = 1\n2:0.25:2.0"])
def test_what_is_written_is_what_was_read(text, tmp_path):
    path = tmp_path / "model.txt"
    write_model_text(parse_model_text(text), path)
    assert path.read_text() == text
    assert read_model_text(path).text() == text


def test_features_may_be_called_by_other_numbers():
    for text in (TREE, NET, "## AdaRank\n1:2.0 3:1.0", "## RankBoost\n2:0.25:2.0"):
        renamed = parse_model_text(text).with_features([10, 20, 30])
        wide = np.zeros((2, 30))
        wide[:, [9, 19, 29]] = X
        np.testing.assert_array_equal(renamed.scores(wide), parse_model_text(text).scores(X))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "m.txt ends where '## ' and the name of a ranker"),
        ("tree\nversion=v4", "m.txt, line 1: this is no model of RankLib"),
        (
            "## LambdaMort\n",
            "line 1: there is no ranker of RankLib 'LambdaMort'; did you mean Lambda",
        ),
        ("## MART\n\n<ensemble>\n</ensemble>", "line 4: the ensemble has no tree"),
        (TREE.replace("</ensemble>\n", ""), "ends where </ensemble> is expected; is it truncated"),
        (
            TREE.replace("</ensemble>", "</ensemble>\nmore"),
            "line 18: nothing is expected after the",
        ),
        (TREE.replace(" 2 ", " two "), "line 7: the feature 'two' is not a whole number from 1 on"),
        (
            TREE.replace(" 2 ", " 99999999999 "),
            "line 7: the feature 99999999999 is beyond 67108864",
        ),
        (TREE.replace('"0.5"', '"1e60"'), "line 5: the weight of the tree 'Infinity' is not a num"),
        (TREE.replace(" 2 ", " 0 "), "line 7: the feature '0' is not a whole number from 1 on"),
        (TREE.replace(" 0.25 ", " 0.2.5 "), "line 8: the threshold '0.2.5' is not a number"),
        (TREE.replace(" 3.0 ", " NaN "), "line 13: the output 'NaN' is not a number"),
        (TREE.replace(" 3.0 ", " 1e99 "), "beyond float32"),
        (TREE.replace('pos="right"', 'pos="left"'), '<split pos="right"> is expected where'),
        (TREE.replace("<threshold>", "<output>", 1), "line 8: <threshold> is expected where '<out"),
        (TREE.replace('weight="0.5"', 'weight="x"'), "line 5: the weight of the tree 'x' is not a"),
        (
            NET.replace("0 1 -1.0", "0 1 -1.0 2.0"),
            "line 10: there are 2 weights where 1 are expected",
        ),
        (NET.replace("0 1 -1.0\n", ""), "line 10: the weights of neuron 1 of layer 0 are expected"),
        (NET.replace("1 3\n", "1 1\n", 1), "line 6: a feature is listed twice"),
        ("## AdaRank\n1:2:3", "line 2: '1:2:3' is not of the form feature:weight"),
        ("## RankBoost\n1:2", "line 2: '1:2' is not of the form feature:threshold:weight"),
        ("## Coordinate Ascent\n1:2 1:3", "line 2: feature 1 has a weight already"),
        ("## Coordinate Ascent\n1:2\n2:3", "line 3: nothing is expected after the model"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text, sentence):
    with pytest.raises(DataError) as error:
        parse_model_text(text, "m.txt")
    assert sentence in str(error.value)


@given(st.sampled_from([TREE, NET]), st.integers(0, 500), st.integers(0, 9), st.text(max_size=4))
def test_a_damaged_text_is_read_or_refused_with_a_sentence(text, start, length, other):
    at = start % len(text)
    try:
        model = parse_model_text(text[:at] + other + text[at + length :])
    except DataError:
        return
    assert parse_model_text(model.text()).text() == model.text()


def test_a_tree_of_any_depth_is_read():
    depth = 5_000
    opening = '<split pos="right"><feature> 1 </feature><threshold> 0 </threshold>'
    leaf = '<split pos="left"><output> 1 </output></split>'
    inside = (opening + leaf) * depth + '<split pos="right"><output> 2 </output></split>'
    tree = inside.replace('<split pos="right">', "<split>", 1) + "</split>" * depth
    text = f'## MART\n<ensemble><tree id="1" weight="1.0">{tree}</tree></ensemble>'
    model = parse_model_text(text)
    np.testing.assert_array_equal(model.scores(np.array([[1.0], [0.0]])), [2.0, 1.0])
    assert parse_model_text(model.text()).text() == model.text()
