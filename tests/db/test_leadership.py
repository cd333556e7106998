import psycopg
import pytest

from tilewright.db import StoreUnavailable, open_store


@pytest.fixture
def stores(postgres_url):
    with open_store(postgres_url) as first, open_store(postgres_url) as second:
        yield first, second


def test_one_leads_and_the_other_once_it_has_given_up(stores):
    first, second = (store.leadership() for store in stores)
    assert [first.leads(), second.leads(), first.leads(), second.leads()] == [True, False, True, False]
    first.close()
    assert second.leads()
    assert not first.leads()
    second.close()
    first.close()


def test_who_loses_its_connection_leads_no_more_and_another_one_does(stores, postgres_url):
    first, second = (store.leadership() for store in stores)
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
    first.close()
    second.close()


def test_two_databases_of_one_server_have_a_leader_each(postgres, postgres_blank, postgres_url):
    name = postgres.database(postgres_blank)
    with open_store(postgres_url) as one, open_store(postgres.url(name)) as other:
        leaders = one.leadership(), other.leadership()
        assert [leader.leads() for leader in leaders] == [True, True]
        for leader in leaders:
            leader.close()
    postgres.drop(name)


def test_a_file_is_led_by_whoever_serves_it(tmp_path):
    with open_store(f"sqlite:///{tmp_path}/one.db") as store:
        assert store.leadership().leads()
