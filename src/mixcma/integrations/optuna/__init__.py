"""mixcma inside Optuna: a sampler for its studies, and run files as studies of its storages."""

from mixcma.integrations.optuna.export import export_to_optuna
from mixcma.integrations.optuna.sampler import MixCmaSampler

__all__ = ["MixCmaSampler", "export_to_optuna"]
