"""TensorBoard in this process: one application of TensorBoard's own, over the run folders that each address names.

TensorBoard itself is imported when somebody first looks, so that a server nobody looks at stays small.
"""

from bot.web.tensorboard.routes import Resolve, add_routes

__all__ = ["Resolve", "add_routes"]
