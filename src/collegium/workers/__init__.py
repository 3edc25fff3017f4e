"""Who does the work: processes here, or a Dask or Ray cluster; private records stay out of their logs."""
