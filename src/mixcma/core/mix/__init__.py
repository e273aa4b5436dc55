"""mixcma's own method: a file for each group of steps of docs/mix.md, in the document's symbols.

===================  ====================================================================================
file                 what of the document
===================  ====================================================================================
``constants.py``     Constants
``state.py``         Notation: the state; which coordinates are live, open, frozen
``sampling.py``      Sampling, steps 1 to 3: the Gaussian, open categories, mutations; older candidates
``best.py``          the best so far, and whether the search is level
``integers.py``      Update, steps 1 to 3: adoption, success, centring
``gaussian.py``      Update, steps 4 to 8: path, growth, mean, step sizes, covariance; step 13: scale
``margin.py``        Update, steps 9 and 10: the margin, freezing and living again
``categories.py``    Update, step 11
``presence.py``      Conditions: variables that a candidate lacks
``method.py``        all of it, in order; step 12; the return to the best point
===================  ====================================================================================
"""

from mixcma.core.mix.method import Mix

__all__ = ["Mix"]
