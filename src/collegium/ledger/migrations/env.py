"""Run by Alembic, on the connection that it is handed."""

from alembic import context

from collegium.ledger.tables import metadata

if hasattr(context, "config"):  # so it is not where somebody merely imports this
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=metadata,
        transactional_ddl=True,
    )
    context.run_migrations()
