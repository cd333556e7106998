"""The SQL store: SQLAlchemy Core, one code path for every dialect."""
