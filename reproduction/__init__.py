"""The published evaluations of individualised PATE, run again: their way, and ours beside them.

Sources of the published numbers (``published.csv``):

- *thesis*: C. Mühl, *Personalizing Private Aggregation of Teacher Ensembles*, 2021;
- *paper*: F. Boenisch, C. Mühl, R. Rinberg, J. Ihrig, A. Dziedzic, *Individualized PATE: Differentially
  Private Machine Learning with Individual Privacy Guarantees*, PoPETs 2023(1), 158-176, doi
  10.56553/popets-2023-0010;
- *lecture*: slides of 2024 that quote Papernot et al. 2017 (arXiv 1610.05755) and Tramèr & Boneh 2021.

Everything here is an experiment on public data: noise is seeded, so that it can be repeated, and true
labels are looked at. Stages are cached in a work folder, so a killed run goes on.
"""
