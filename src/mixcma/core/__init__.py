"""The algorithms: pure functions of arrays, one text for NumPy and JAX, for one run and for many.

The dialect: functions take arrays and return new ones; no item assignment, no boolean-mask indexing,
no shapes that depend on data, no Python ``if`` on an array's value. Every array may carry leading
batch axes, written ``...``; a single run has none. A number that each run has one of is ``(...)``: in a single run a
scalar, which is faster than an array of one; `as_column` puts it beside vectors. Noise is an argument.

Glossary, in the symbols of Hamano et al., "CMA-ES with Margin" (GECCO 2022):

=============  ==================  ==============================================================
name           shape               meaning
=============  ==================  ==============================================================
``m``          ``(..., N)``        mean of the search distribution
``sigma``      ``(..., 1)``        step size; its last axis is kept so that it broadcasts
``C``          ``(..., N, N)``     covariance matrix
``A``          ``(..., N)``        diagonal of the margin's affine matrix
``p_sigma``    ``(..., N)``        evolution path of the step size
``p_c``        ``(..., N)``        evolution path of the rank-one update
``root``       ``(..., N, N)``     C^(1/2) = B D B^T;  ``inverse_root``: C^(-1/2)
``y``          ``(..., L, N)``     samples of N(0, C), one row per candidate
``step``       ``(..., L, N)``     x - m: what the mean is recombined from
``v``          ``(..., L, N)``     latent points: decoded and evaluated
``w``          ``(..., L)``        recombination weight of each candidate, in the candidates' order
``alpha``      number              the margin
``theta``      ``(..., N_cat, K)`` probabilities of the choices of each category
``N, L``       integers            dimension; population size (lambda)
=============  ==================  ==============================================================

``_sq`` means squared.
"""
