"""Generative models of the seeds, made of votes and of private steps: PATE-GAN, DP-GAN."""
