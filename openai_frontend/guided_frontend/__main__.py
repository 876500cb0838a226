"""`python -m guided_frontend`: serves until it is told to stop."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys

import uvicorn

from guided_frontend import served, settings
from guided_frontend.app import create_app
from guided_frontend.errors import ApiError
from guided_frontend.settings import Settings
from guided_frontend.triton_backend import TritonBackend

_ASK_SECONDS = 120


async def serve(chosen: Settings) -> None:
    """Runs the server. Raises OSError, ValueError or ApiError when the model's files cannot be found."""
    backend = TritonBackend(chosen.triton_url, chosen.first_token_timeout, chosen.token_timeout)
    models = tuple([served.load(one, await _parameters(backend, one)) for one in settings.per_model(chosen)])
    app = create_app(chosen, backend, models)
    config = uvicorn.Config(
        app, chosen.host, chosen.port, log_level="warning", access_log=False, timeout_keep_alive=chosen.keep_alive,
        timeout_graceful_shutdown=chosen.drain_timeout, server_header=False,
    )  # fmt: skip
    # what is loaded by now stays; a full collection that walks it holds up every stream
    gc.collect()
    gc.freeze()
    await uvicorn.Server(config).serve()


async def _parameters(backend: TritonBackend, chosen: Settings) -> dict[str, str]:
    """The Triton model's parameters: waited for when the settings name no tokenizer, else taken if there."""
    for attempt in range(_ASK_SECONDS if not chosen.model else 1):
        try:
            return dict(await backend.parameters(chosen.triton_model))
        except ApiError as error:
            logging.getLogger("guided_frontend").warning("%s (attempt %d)", error.message, attempt + 1)
            await asyncio.sleep(1 if not chosen.model else 0)
    return {}


def main() -> None:
    """The command."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    try:
        asyncio.run(serve(settings.load(sys.argv[1:], os.environ)))
    except (OSError, ValueError) as error:
        sys.exit(f"cannot start: {error}")


if __name__ == "__main__":
    main()
