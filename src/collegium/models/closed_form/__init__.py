"""Teachers with a closed form, hundreds trained at once."""
