"""Whatever is sent, the answer is a ranking or a sentence; never a 500, never a crash."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from served import NAMES, client, save_model

VERBS = ("rank", "score", "rank/batch", "score/batch")
NUMBERS = st.one_of(
    st.floats(),
    st.integers(),
    st.integers(-(10**400), 10**400),
    st.sampled_from([5e-324, 1.7e308, -1.7e308, -0.0, 2**63, True, None, "1"]),
)
ANYTHING = st.recursive(
    st.one_of(NUMBERS, st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
FEATURES = st.one_of(
    st.lists(NUMBERS, min_size=6, max_size=6),
    st.dictionaries(st.sampled_from([*NAMES, "z", ""]), NUMBERS, max_size=8),
    ANYTHING,
)
DOCUMENT = st.fixed_dictionaries(
    {"features": FEATURES}, optional={"id": ANYTHING, "group": ANYTHING, "x": ANYTHING}
)
REQUEST = st.fixed_dictionaries(
    {"documents": st.one_of(st.lists(DOCUMENT, max_size=4), ANYTHING)},
    optional={
        "query": st.one_of(st.text(max_size=4), ANYTHING),
        "top": st.one_of(st.integers(-1, 5), st.integers(), ANYTHING),
        "per_group": st.one_of(st.integers(-1, 3), st.integers(), ANYTHING),
        "explain": st.one_of(st.integers(-1, 9), st.integers(), ANYTHING),
    },
)
BODIES = st.one_of(
    REQUEST,
    st.fixed_dictionaries({"queries": st.one_of(st.lists(REQUEST, max_size=3), ANYTHING)}),
    ANYTHING,
)
QUIET = settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(scope="module", params=[("listnet", {}), ("gbdt", {"n_estimators": 3})])
def webs(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "web.rw"
    name, parameters = request.param
    save_model(path, name, **parameters)
    return [client(path), client(path, missing="nan", unknown="ignore")]


def check(answer):
    payload = json.loads(answer.content)
    if answer.status_code != 200:
        assert answer.status_code in (400, 413, 422), answer.text
        assert payload["error"].endswith((".", "!", "?")), payload["error"]
        return
    for result in payload.get("results", [payload]):
        for place in result.get("ranking", []):
            assert abs(place["score"]) < float("inf")


@QUIET
@given(body=BODIES, verb=st.sampled_from(VERBS))
def test_any_json(webs, body, verb):
    text = json.dumps(body)
    for web in webs:
        headers = {"content-type": "application/json"}
        check(web.post(f"/v1/models/web/{verb}", content=text, headers=headers))


@QUIET
@given(body=st.binary(max_size=200), verb=st.sampled_from(VERBS))
def test_any_bytes(webs, body, verb):
    check(webs[0].post(f"/v1/models/web/{verb}", content=body))


@given(name=st.text(max_size=20))
def test_any_name(webs, name):
    from urllib.parse import quote

    answer = webs[0].get(f"/v1/models/{quote(name, safe='')}")
    assert answer.status_code in (200, 404, 307), answer.text


SOUND = st.lists(
    st.fixed_dictionaries({"features": st.lists(st.floats(-9, 9), min_size=6, max_size=6)}),
    min_size=1,
    max_size=3,
)
LIMITS = st.one_of(st.none(), st.integers(), st.integers(-(10**30), 10**30))


@QUIET
@given(own=SOUND, group=st.integers(), top=LIMITS, per_group=LIMITS, explain=LIMITS)
def test_any_limit_on_sound_documents(webs, own, group, top, per_group, explain):
    payload = [{**document, "group": group} for document in own]
    body = {"documents": payload, "top": top, "per_group": per_group, "explain": explain}
    check(webs[0].post("/v1/models/web/rank", json=body))
