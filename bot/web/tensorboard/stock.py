"""TensorBoard's own application, with the parts of it that read through a provider and nothing from the disk."""

from argparse import Namespace
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import tensorboard
from tensorboard.backend import application
from tensorboard.plugins.audio import audio_plugin
from tensorboard.plugins.core import core_plugin
from tensorboard.plugins.custom_scalar import custom_scalars_plugin
from tensorboard.plugins.distribution import distributions_plugin
from tensorboard.plugins.graph import graphs_plugin
from tensorboard.plugins.histogram import histograms_plugin
from tensorboard.plugins.hparams import hparams_plugin
from tensorboard.plugins.image import images_plugin
from tensorboard.plugins.mesh import mesh_plugin
from tensorboard.plugins.metrics import metrics_plugin
from tensorboard.plugins.pr_curve import pr_curves_plugin
from tensorboard.plugins.scalar import scalars_plugin
from tensorboard.plugins.text import text_plugin

from bot.web.tensorboard.provider import FolderProvider

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

# The order is that of the tabs. Left out: the debugger, the projector, the profiler and the what-if tool, which look
# for files by themselves.
PLUGINS = [
    core_plugin.CorePlugin,
    metrics_plugin.MetricsPlugin,
    scalars_plugin.ScalarsPlugin,
    custom_scalars_plugin.CustomScalarsPlugin,
    images_plugin.ImagesPlugin,
    audio_plugin.AudioPlugin,
    graphs_plugin.GraphsPlugin,
    distributions_plugin.DistributionsPlugin,
    histograms_plugin.HistogramsPlugin,
    text_plugin.TextPlugin,
    pr_curves_plugin.PrCurvesPlugin,
    hparams_plugin.HParamsPlugin,
    mesh_plugin.MeshPlugin,
]
WEB_FILES = Path(tensorboard.__file__).parent / "webfiles.zip"


def build() -> Wsgi:
    """One application for everybody; what it shows is set per request (see `provider`)."""
    flags = Namespace(logdir="", logdir_spec="", path_prefix="", samples_per_plugin={}, window_title="TensorBoard")
    app: Wsgi = application.TensorBoardWSGIApp(
        flags, PLUGINS, data_provider=FolderProvider(), assets_zip_provider=lambda: WEB_FILES.open("rb")
    )
    return app
