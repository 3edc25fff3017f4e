"""A package by name, so that another of that name in the environment (Opacus installs one) is not meant."""
