"""Alembic's environment: the models' metadata, types and server defaults compared."""

import sqlalchemy as sa
from alembic import context

import models

engine = sa.create_engine(models.URL)
with engine.connect() as connection:
    context.configure(
        connection=connection,
        target_metadata=models.Base.metadata,
        compare_type=True,
        compare_server_default=True,
        version_locations=context.config.get_main_option("version_locations"),
    )
    with context.begin_transaction():
        context.run_migrations()
