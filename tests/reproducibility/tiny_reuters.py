"""A Reuters-21578 of a few dozen stories, written by hand and by rule."""

HEAD = '<!DOCTYPE lewis SYSTEM "lewis.dtd">\n'

ONE = """<REUTERS TOPICS="YES" LEWISSPLIT="TRAIN" CGISPLIT="TRAINING-SET" OLDID="5544" NEWID="7">
<DATE>26-FEB-1987 15:01:01.79</DATE>
<TOPICS><D>grain</D><D>wheat</D></TOPICS>
<PLACES><D>usa</D></PLACES>
<UNKNOWN>
&#5;&#5;&#5;C T</UNKNOWN>
<TEXT>&#2;
<TITLE>WHEAT &lt;UP> AT&amp;T</TITLE>
<DATELINE>    CHICAGO, Feb 26 - </DATELINE><BODY>Wheat rose
a lot.
 Reuter
&#3;</BODY></TEXT>
</REUTERS>
"""
UNPROCESSED = """<REUTERS TOPICS="YES" LEWISSPLIT="TEST" CGISPLIT="TRAINING-SET" NEWID="9">
<TOPICS></TOPICS>
<TEXT TYPE="UNPROC">&#2;
blah 3 &lt; 4 of it
&#3;</TEXT>
</REUTERS>
"""
BRIEF = """<REUTERS TOPICS="NO" LEWISSPLIT="TRAIN" CGISPLIT="TRAINING-SET" CSECS="8" NEWID="8">
<TOPICS></TOPICS>
<TEXT TYPE="BRIEF">&#2;
<TITLE>SHORT ONE</TITLE>
<DATELINE>X, May 1</DATELINE></TEXT>
</REUTERS>
"""

WORDS = {"grain": "wheat corn harvest", "money": "bank dollar rates", "ship": "port vessel cargo"}


def story(number, topic, part):
    """Return a story on a topic, or on none, some words of which say so."""
    words = WORDS.get(topic, "nothing much said").split()
    filler = " ".join(f"filler{(number * k) % 11}" for k in (1, 2, 3))
    listed = f"<D>{topic}</D>" if topic else ""
    return (
        f'<REUTERS TOPICS="YES" LEWISSPLIT="{part}" CGISPLIT="TRAINING-SET" NEWID="{number}">\n'
        f"<TOPICS>{listed}</TOPICS>\n<TEXT><TITLE>{words[number % 3]}</TITLE>"
        f"<BODY>{words[(number + 1) % 3]} {filler}</BODY></TEXT>\n</REUTERS>\n"
    )


def write_reuters(folder, stories=240):
    """Write stories on three topics and on none, two thirds of them for training, in two files."""
    folder.mkdir(parents=True)
    topics = (*WORDS, None)
    written = [
        story(n, topics[n % 4], "TEST" if n % 3 == 0 else "TRAIN") for n in range(1, stories + 1)
    ]
    half = stories // 2
    (folder / "reut2-000.sgm").write_text(HEAD + "".join(written[:half]), encoding="latin-1")
    (folder / "reut2-001.sgm").write_text(HEAD + "".join(written[half:]), encoding="latin-1")
    return folder
