"""What a user declares: variables and the space they form, with all the checks of both."""

from mixcma.space.conditions import When
from mixcma.space.errors import invalid
from mixcma.space.space import Params, Space
from mixcma.space.variables import Bool, Categorical, Discrete, Float, Int, Value, Variable

__all__ = ["Bool", "Categorical", "Discrete", "Float", "Int", "Params", "Space", "Value", "Variable", "When", "invalid"]
