"""Triton loads this file; the model is in the package beside it."""

from guided_engine.triton_model import TritonPythonModel

__all__ = ["TritonPythonModel"]
