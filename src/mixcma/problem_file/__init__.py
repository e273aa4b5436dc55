"""problem.toml: an optimisation described in a file."""

from mixcma.problem_file.reading import Mistake, Problem, WrongProblem, load_problem, problem_from

__all__ = ["Mistake", "Problem", "WrongProblem", "load_problem", "problem_from"]
