"""The number in a value of a summary, read by protobuf."""

import numpy as np
from tensorboard.compat.proto import summary_pb2, tensor_pb2
from tensorboard.util import tensor_util


def scalar_of(value: summary_pb2.Summary.Value) -> float | None:
    """The number of a simple value, or of a tensor that holds just one; None for everything else."""
    kind = value.WhichOneof("value")
    if kind == "simple_value":
        return float(value.simple_value)
    return _scalar(value.tensor) if kind == "tensor" else None


def _scalar(tensor: tensor_pb2.TensorProto) -> float | None:
    # a shape may claim anything, and numpy would make it
    if any(dimension.size != 1 for dimension in tensor.tensor_shape.dim):
        return None
    try:
        array = np.asarray(tensor_util.make_ndarray(tensor))
    except (ValueError, TypeError):
        return None
    if array.size != 1 or array.dtype.kind not in "biuf":
        return None
    return float(array.reshape(()).astype(np.float64))
