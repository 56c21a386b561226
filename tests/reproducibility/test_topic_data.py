import tarfile

import numpy as np
import pytest
from tiny_reuters import BRIEF, HEAD, ONE, UNPROCESSED, write_reuters

from rankwright.errors import DataError, UsageError
from reproducibility.topic_data import Story, made_clicks, read_reuters, reuters_fold


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


def test_stories_without_judgments_are_left_out():
    stories = made(20 * [("train", ["a"])] + 4 * [("test", ["a"])])
    unjudged = [Story(99, "word", (), False, None)]
    fold = reuters_fold([*stories, *unjudged], min_train=1, min_stories=1)
    assert sum(part.X.shape[0] for part in (fold.train, fold.valid, fold.test)) == 24


def test_what_cannot_be_cut_is_reported(stories):
    with pytest.raises(UsageError, match="there is no split 'modapt'; did you mean modapte"):
        reuters_fold(stories, split="modapt")
    with pytest.raises(UsageError, match="three shares"):
        reuters_fold(stories, sizes=(0.5, 0.6, 0.1))
    with pytest.raises(UsageError, match="valid is a share"):
        reuters_fold(stories, split="modapte", valid=1.0)
    with pytest.raises(DataError, match="no topic has 500 stories"):
        reuters_fold(stories, min_train=500)
    with pytest.raises(DataError, match="no usable words"):
        reuters_fold(stories, min_train=5, min_stories=110)


# --- test_clicks ---


SMALL = {"queries": 3, "features": 200, "row": 12, "themes": 8, "words": 6, "relevant": 0.1}


def test_images_are_sparse_rows_of_unit_length_in_three_parts():
    names, *parts = made_clicks(400, sizes=(0.5, 0.25, 0.25), **SMALL)
    assert names == ("query 1", "query 2", "query 3")
    assert [X.shape for X, _ in parts] == [(200, 200), (100, 200), (100, 200)]
    assert [grades.shape for _, grades in parts] == [(200, 3), (100, 3), (100, 3)]
    for X, _ in parts:
        assert X.nnz <= 12 * X.shape[0]
        np.testing.assert_allclose(np.sqrt(X.multiply(X).sum(axis=1)), 1.0)


def test_the_share_of_selected_images_is_as_asked_and_counts_are_whole_and_uneven():
    _, *parts = made_clicks(1000, **SMALL)
    clicks = np.vstack([grades.toarray() for _, grades in parts])
    np.testing.assert_allclose((clicks > 0).mean(axis=0), 0.1, atol=0.002)
    assert (clicks == np.floor(clicks)).all()
    assert np.median(clicks[clicks > 0]) <= 3 < 8 < clicks.max() <= 1000


def test_without_noise_clicks_follow_from_the_features():
    """A least-squares fit of the features tells selected images from others, with noise not."""
    quality = []
    for noise in (0.0, 0.99):
        _, (X, clicks), _, (X_test, clicks_test) = made_clicks(2000, noise=noise, **SMALL)
        w = np.linalg.lstsq(X.toarray(), np.log1p(clicks.toarray()), rcond=None)[0]
        scores, selected = X_test @ w, clicks_test.toarray() > 0
        order = scores[:, 0][selected[:, 0]][:, None] > scores[:, 0][~selected[:, 0]]
        quality.append(order.mean())
    assert quality[0] > 0.9 > 0.65 > quality[1]


def test_the_same_seed_gives_the_same_data_and_another_another():
    one, same, other = (made_clicks(100, seed=seed, **SMALL) for seed in (1, 1, 2))
    assert (one[1][0] != same[1][0]).nnz == 0
    assert (one[3][1] != same[3][1]).nnz == 0
    assert (one[1][0] != other[1][0]).nnz > 0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"sizes": (0.5, 0.5)}, "three shares above 0 that add up to 1"),
        ({"noise": 1.0}, "noise and relevant are shares"),
        ({"words": 300}, "no more words than features"),
    ],
)
def test_what_cannot_be_made_is_refused(wrong, words):
    with pytest.raises(UsageError, match=words):
        made_clicks(100, **{**SMALL, **wrong})


# --- test_reuters ---


def write(path, text):
    path.write_bytes(text.encode("latin-1"))
    return path


def test_a_story_is_its_title_and_body_without_markup(tmp_path):
    (found,) = read_reuters(write(tmp_path / "a.sgm", HEAD + ONE))
    assert found == Story(
        number=7,
        text="WHEAT <UP> AT&T\nWheat rose\na lot.\n Reuter",
        topics=("grain", "wheat"),
        judged=True,
        modapte="train",
    )


def test_stories_without_a_body_keep_what_text_they_have(tmp_path):
    text = HEAD + UNPROCESSED + BRIEF
    brief, whole = read_reuters(write(tmp_path / "a.sgm", text))
    assert (whole.number, whole.text, whole.topics) == (9, "blah 3 < 4 of it", ())
    assert (brief.number, brief.text) == (8, "SHORT ONE")


def test_modapte_uses_judged_stories_alone(tmp_path):
    unused = ONE.replace('"TRAIN"', '"NOT-USED"').replace('"7"', '"11"')
    found = read_reuters(write(tmp_path / "a.sgm", HEAD + ONE + BRIEF + UNPROCESSED + unused))
    assert [(s.number, s.judged, s.modapte) for s in found] == [
        (7, True, "train"),
        (8, False, None),
        (9, True, "test"),
        (11, True, None),
    ]


def test_bytes_beyond_ascii_are_latin_1(tmp_path):
    (found,) = read_reuters(write(tmp_path / "a.sgm", ONE.replace("a lot", "caf\xe9")))
    assert "caf\xe9" in found.text


def test_a_folder_an_archive_in_it_and_the_archive_itself_give_the_same(tmp_path):
    folder = write_reuters(tmp_path / "plain" / "reuters21578", stories=12)
    packed = tmp_path / "packed"
    packed.mkdir()
    with tarfile.open(packed / "reuters21578.tar.xz", "w:xz") as archive:
        archive.add(folder, arcname="reuters21578")
    expected = read_reuters(folder)
    assert [story.number for story in expected] == list(range(1, 13))
    assert read_reuters(tmp_path / "plain") == expected
    assert read_reuters(packed) == expected
    assert read_reuters(packed / "reuters21578.tar.xz") == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEAD + ONE[:-12], "line 2: this story has no end"),
        (HEAD + ONE.replace("</REUTERS>", "") + UNPROCESSED, "line 2: this story has no end"),
        (ONE.replace(' NEWID="7"', ""), "line 1: this story has no NEWID"),
        (ONE + ONE, "two stories have NEWID 7"),
        ("nothing here", "holds no story"),
    ],
)
def test_a_damaged_file_is_reported_with_its_line(tmp_path, text, words):
    with pytest.raises(DataError, match=words):
        read_reuters(write(tmp_path / "a.sgm", text))


def test_what_is_not_there_or_not_an_archive_is_reported(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        read_reuters(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"neither \.sgm files nor a \.tar archive"):
        read_reuters(tmp_path / "empty")
    with pytest.raises(DataError, match=r"bad\.tar\.xz is damaged or no tar archive"):
        read_reuters(write(tmp_path / "bad.tar.xz", "not an archive"))


def test_a_cut_archive_is_reported(tmp_path):
    folder = write_reuters(tmp_path / "plain", stories=40)
    with tarfile.open(tmp_path / "a.tar.xz", "w:xz") as archive:
        archive.add(folder)
    whole = (tmp_path / "a.tar.xz").read_bytes()
    (tmp_path / "a.tar.xz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="damaged"):
        read_reuters(tmp_path / "a.tar.xz")


def test_the_real_collection_has_the_counts_of_its_readme(data_dir):
    stories = read_reuters(data_dir / "Reuters21578")
    parts = [story.modapte for story in stories]
    assert (len(stories), parts.count("train"), parts.count("test")) == (21_578, 9_603, 3_299)
    assert len({topic for story in stories for topic in story.topics}) == 120
