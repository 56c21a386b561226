import numpy as np
import pytest
from tiny_reuters import write_reuters

from reproducibility.reuters import Story, read_reuters
from rankwright.errors import DataError, UsageError
from reproducibility.topic_folds import reuters_fold


@pytest.fixture(scope="module")
def stories(tmp_path_factory):
    return read_reuters(write_reuters(tmp_path_factory.mktemp("r") / "reuters"))


def test_the_random_split_has_the_sizes_asked_for(stories):
    fold = reuters_fold(stories, sizes=(0.5, 0.25, 0.25), min_train=5)
    parts = (fold.train, fold.valid, fold.test)
    assert [part.X.shape[0] for part in parts] == [120, 60, 60]
    assert [part.grades.shape for part in parts] == [(120, 3), (60, 3), (60, 3)]
    assert sum(part.grades.sum() for part in parts) == 180  # every story on a topic is somewhere
    other = reuters_fold(stories, min_train=5, seed=1)
    assert (other.train.grades != fold.train.grades).nnz > 0


def test_modapte_holds_back_a_part_of_its_training_stories(stories):
    fold = reuters_fold(stories, split="modapte", valid=0.25, min_train=5)
    assert [part.X.shape[0] for part in (fold.train, fold.valid, fold.test)] == [120, 40, 80]
    expected = [[float(topic in s.topics) for topic in fold.topics]
                for s in stories if s.modapte == "test"]  # fmt: skip
    np.testing.assert_array_equal(fold.test.grades.toarray(), expected)


def made(parts):
    """Return ModApte stories: a list of (part, topics); the words are those of the topics."""
    return [
        Story(n, "word " + " ".join(topics), tuple(topics), True, part)
        for n, (part, topics) in enumerate(parts, start=1)
    ]


def test_a_topic_stays_by_its_count_in_train_and_where_valid_and_test_have_any():
    rare = made(
        [("train", ["often", "rare"])]
        + 39 * [("train", ["often", "untested"])]
        + [("test", ["often", "rare"])]
    )
    fold = reuters_fold(rare, split="modapte", valid=0.5, min_train=5, min_stories=1)
    assert fold.topics == ("often",)


def test_features_know_the_words_of_train_alone():
    stories = made(20 * [("train", ["seen"])] + [("test", ["seen", "unseen"])])
    fold = reuters_fold(stories, split="modapte", min_train=1, min_stories=1)
    assert fold.train.X.shape[1] == fold.test.X.shape[1] == 2  # "word" and "seen"
    np.testing.assert_allclose(fold.test.X.multiply(fold.test.X).sum(axis=1), 1.0)


def test_stories_that_nobody_judged_are_left_out():
    stories = made(20 * [("train", ["a"])] + 4 * [("test", ["a"])])
    unjudged = [Story(99, "word", (), False, None)]
    fold = reuters_fold([*stories, *unjudged], min_train=1, min_stories=1)
    assert sum(part.X.shape[0] for part in (fold.train, fold.valid, fold.test)) == 24


def test_what_cannot_be_cut_is_told(stories):
    with pytest.raises(UsageError, match="there is no split 'modapt'; did you mean modapte"):
        reuters_fold(stories, split="modapt")
    with pytest.raises(UsageError, match="three shares"):
        reuters_fold(stories, sizes=(0.5, 0.6, 0.1))
    with pytest.raises(UsageError, match="valid is a share"):
        reuters_fold(stories, split="modapte", valid=1.0)
    with pytest.raises(DataError, match="no topic has 500 stories"):
        reuters_fold(stories, min_train=500)
    with pytest.raises(DataError, match="no words to go by"):
        reuters_fold(stories, min_train=5, min_stories=110)
