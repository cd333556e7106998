import time

import psycopg
import pytest

from tilewright.db import StoreUnavailable, open_store

SILENCE = 2.0


@pytest.fixture
def stores(postgres_url):
    with open_store(postgres_url) as first, open_store(postgres_url) as second:
        yield first, second


@pytest.fixture
def leaders(stores):
    """Two that stand for election to one database, each for a process of its own."""
    made = [store.leadership(SILENCE) for store in stores]
    yield made
    for leadership in made:
        leadership.close()


def test_one_leads_and_the_other_once_it_has_given_up(leaders):
    first, second = leaders
    assert [first.leads(), second.leads(), first.leads(), second.leads()] == [True, False, True, False]
    first.close()
    assert second.leads()
    assert not first.leads()


def test_who_loses_its_connection_leads_no_more_and_another_one_does(leaders, postgres_url):
    first, second = leaders
    assert first.leads()
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE application_name = 'tilewright leader' AND datname = current_database()"
        )
    assert second.leads()
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        first.leads()
    assert not first.leads()


@pytest.mark.slow
def test_who_stands_still_leads_no_more_and_finds_out_before_it_is_told_that_it_leads(leaders):
    first, second = leaders
    assert (first.leads(), second.leads()) == (True, False)
    _until_it_leads(second)
    assert (first.leads(), first.leads()) == (False, False)
    second.close()
    assert first.leads()


@pytest.mark.slow
def test_who_asks_again_and_again_leads_for_longer_than_it_may_stand_still(leaders):
    first, second = leaders
    end = time.monotonic() + 2 * SILENCE
    while time.monotonic() < end:
        assert (first.leads(), second.leads()) == (True, False)
        time.sleep(0.1)


@pytest.mark.slow
def test_the_only_one_that_stands_for_election_leads_again_after_it_stood_still(leaders):
    only, _ = leaders
    assert only.leads()
    time.sleep(2 * SILENCE)
    assert (only.leads(), only.leads()) == (False, True)


def test_two_databases_of_one_server_have_a_leader_each(postgres, postgres_blank, postgres_url):
    name = postgres.database(postgres_blank)
    with open_store(postgres_url) as one, open_store(postgres.url(name)) as other:
        leaders = one.leadership(SILENCE), other.leadership(SILENCE)
        assert [leader.leads() for leader in leaders] == [True, True]
        for leader in leaders:
            leader.close()
    postgres.drop(name)


def test_a_file_is_led_by_whoever_serves_it(tmp_path):
    with open_store(f"sqlite:///{tmp_path}/one.db") as store:
        assert store.leadership(SILENCE).leads()


def _until_it_leads(leadership):
    deadline = time.monotonic() + 10 * SILENCE
    while not leadership.leads():
        assert time.monotonic() < deadline, "nobody let go of the lock"
        time.sleep(0.1)
