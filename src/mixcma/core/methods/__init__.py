"""The methods, each a file: those of the paper, CatCMA with Margin, and mixcma's own, which has a room (core/mix)."""

from mixcma.core.method import Method
from mixcma.core.methods.catmargin import CatMargin
from mixcma.core.methods.cma import Cma
from mixcma.core.methods.integer_mutation import IntegerMutation
from mixcma.core.methods.margin import Margin
from mixcma.core.mix import Mix

__all__ = ["METHODS", "CatMargin", "Cma", "IntegerMutation", "Margin", "Method", "Mix"]

METHODS: dict[str, Method] = {
    "cma": Cma(),
    "im": IntegerMutation(),
    "im-box": IntegerMutation(box=True),
    "margin": Margin(),
    "catmargin": CatMargin(),
    "mix-without-model": Mix(model=False),
    "mix": Mix(),
}
