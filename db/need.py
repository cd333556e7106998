"""What a database needs that the base install has not."""


def need_sql() -> None:
    """Raises ModuleNotFoundError that says what to install."""
    try:
        import alembic
        import sqlalchemy
    except ModuleNotFoundError as e:
        raise ModuleNotFoundError(
            f"a database needs {e.name}, which is not installed: pip install 'tilewright[store]'", name=e.name
        ) from None
    del alembic, sqlalchemy
