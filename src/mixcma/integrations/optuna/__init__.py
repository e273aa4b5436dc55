"""mixcma inside Optuna: a sampler for studies, and the export of run files into Optuna storages."""

from mixcma.integrations.optuna.export import export_to_optuna
from mixcma.integrations.optuna.sampler import MixCmaSampler

__all__ = ["MixCmaSampler", "export_to_optuna"]
