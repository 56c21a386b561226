import tarfile

import pytest
from tiny_reuters import BRIEF, HEAD, ONE, UNPROCESSED, write_reuters

from reproducibility.reuters import Story, read_reuters
from rankwright.errors import DataError


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
def test_a_damaged_file_is_told_with_its_line(tmp_path, text, words):
    with pytest.raises(DataError, match=words):
        read_reuters(write(tmp_path / "a.sgm", text))


def test_what_is_not_there_or_not_an_archive_is_told(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        read_reuters(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"neither \.sgm files nor a \.tar archive"):
        read_reuters(tmp_path / "empty")
    with pytest.raises(DataError, match=r"bad\.tar\.xz is damaged or no tar archive"):
        read_reuters(write(tmp_path / "bad.tar.xz", "not an archive"))


def test_a_cut_archive_is_told(tmp_path):
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
