"""The readers of the experiments' data on tiny files."""

import lzma
import tarfile
from io import BytesIO

import numpy as np
import pytest
from scipy import sparse

from reproducibility.data import file_in, jester, read_jester, uci
from reproducibility.images import image_search
from reproducibility.protocol import Run
from reproducibility.reuters import modapte_fold, parse_stories, random_fold, read_reuters

STORY = """<REUTERS TOPICS="YES" LEWISSPLIT="TRAIN" CGISPLIT="TRAINING-SET" OLDID="5544" NEWID="7">
<TOPICS><D>grain</D><D>wheat</D></TOPICS>
<TEXT>&#2;
<TITLE>WHEAT &lt;UP> AT&amp;T</TITLE>
<DATELINE>    CHICAGO, Feb 26 - </DATELINE><BODY>Wheat rose
a lot.
&#3;</BODY></TEXT>
</REUTERS>
<REUTERS TOPICS="NO" LEWISSPLIT="TRAIN" NEWID="8"><TEXT><TITLE>NOT JUDGED</TITLE></TEXT></REUTERS>
<REUTERS TOPICS="YES" LEWISSPLIT="TEST" NEWID="9">
<TOPICS></TOPICS>
<TEXT TYPE="UNPROC">&#2;
blah 3 &lt; 4 of it
&#3;</TEXT>
</REUTERS>
"""


def write_reuters(folder, stories=120):
    """Write stories on two topics and on none, two thirds of them for training."""
    words = {"grain": "wheat corn", "money": "bank dollar", "": "nothing much"}
    text = ""
    for n in range(1, stories + 1):
        topic = list(words)[n % 3]
        split = "TEST" if n % 4 == 0 else "TRAIN"
        listed = f"<D>{topic}</D>" if topic else ""
        body = f"{words[topic]} filler{n % 5}"
        text += (
            f'<REUTERS TOPICS="YES" LEWISSPLIT="{split}" NEWID="{n}"><TOPICS>{listed}</TOPICS>'
            f"<TEXT><TITLE>t</TITLE><BODY>{body}</BODY></TEXT></REUTERS>\n"
        )
    folder.mkdir()
    with tarfile.open(folder / "reuters.tar.xz", "w:xz") as archive:
        member = tarfile.TarInfo("reut2-000.sgm")
        member.size = len(text)
        archive.addfile(member, BytesIO(text.encode("latin-1")))
    return folder


def test_a_file_may_be_compressed(tmp_path):
    (tmp_path / "a.txt.xz").write_bytes(lzma.compress(b"1"))
    assert file_in(Run(tmp_path), "a.txt").name == "a.txt.xz"
    with pytest.raises(FileNotFoundError, match="--data"):
        file_in(Run(tmp_path), "b.txt")


def test_uci_queries_are_drawn_from_disjoint_parts_of_the_rows(tmp_path):
    rows = [f"{n},{n % 7},{n % 3 + 1}" for n in range(400)]
    (tmp_path / "t.data").write_text("\n".join(rows))
    sizes = {"queries": 4, "documents": 20, "draws": 2}
    folds = uci(Run(tmp_path), "t.data", delimiter=",", **sizes)
    assert len(folds) == 2
    for fold in folds:
        numbers = [set(part.X[:, 0]) for part in fold]
        assert all(part.sizes.tolist() == [20] * 4 for part in fold)
        assert not numbers[0] & numbers[1] | numbers[0] & numbers[2] | numbers[1] & numbers[2]
        np.testing.assert_array_equal(fold.test.y, fold.test.X[:, 0] % 3)


def write_jester(folder, users=40, items=12):
    rng = np.random.default_rng(0)
    ratings = np.round(rng.uniform(-10, 10, (users, items)), 2)
    ratings[rng.random((users, items)) < 0.2] = 99
    (folder / "Jester1").mkdir()
    table = np.column_stack([(ratings != 99).sum(axis=1), ratings])
    np.savetxt(folder / "Jester1/jester-data-1.csv", table, "%.2f", delimiter=",")
    return ratings


def test_jester_s_ratings_become_grades(tmp_path):
    ratings = write_jester(tmp_path)
    data = read_jester(tmp_path / "Jester1/jester-data-1.csv", levels=6)
    assert len(data.user) == (ratings != 99).sum()
    assert set(data.grade) == {0.0, 1.0, 2.0, 3.0, 4.0, 5.0}
    order = np.argsort(ratings[data.user, data.item])
    assert (np.diff(data.grade[order]) >= 0.0).all()


@pytest.mark.parametrize("known", [{"known": 3}, {"known_items": 8}])
def test_a_user_s_ratings_are_known_or_to_be_ranked(tmp_path, known):
    write_jester(tmp_path)
    run = Run(tmp_path)
    for train, valid, test in jester(run, **known, users=8, input_users=10, least=5, draws=2):
        asked = {*valid.qid, *test.qid}
        assert not set(valid.qid) & set(test.qid)
        assert len(set(train.qid) - asked) == 10
        of_test = sparse.csr_array(test.X).indices
        for number, user in enumerate(train.qid):
            rows = slice(train.indptr[number], train.indptr[number + 1])
            items = set(sparse.csr_array(train.X).indices[rows])
            if user in asked and "known" in known:
                assert len(items) == 3
            if user in test.qid:
                (q,) = np.flatnonzero(test.qid == user)
                assert not items & set(of_test[test.indptr[q] : test.indptr[q + 1]])


def test_only_judged_stories_are_read_as_plain_text():
    one, two = parse_stories(STORY)
    assert (one.number, one.topics, one.split) == (7, ("grain", "wheat"), "TRAIN")
    assert one.text == "WHEAT <UP> AT&T\nWheat rose\na lot."
    assert (two.number, two.topics, two.text) == (9, (), "blah 3 < 4 of it")


def test_reuters_is_cut_in_three(tmp_path):
    stories = read_reuters(write_reuters(tmp_path / "Reuters"))
    assert [story.number for story in stories] == list(range(1, 121))
    fold = modapte_fold(stories, seed=0)
    assert fold.topics == ("grain", "money")
    assert [part.X.shape[0] for part in fold[1:]] == [68, 22, 30]
    assert random_fold(stories, seed=0).train.X.shape[0] == 60


def test_a_few_images_are_selected_for_each_query():
    fold = image_search(2_000, 3, 300, seed=0)
    assert [part.X.shape for part in fold[1:]] == [(1_000, 300), (500, 300), (500, 300)]
    selected = sum(part.grades.count_nonzero() for part in fold[1:])
    assert selected == pytest.approx(3 * 0.01 * 2_000, abs=3)
    assert max(part.grades.max() for part in fold[1:]) > 3.0
    np.testing.assert_allclose(sparse.linalg.norm(fold.train.X, axis=1), 1.0)
