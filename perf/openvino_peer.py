"""OpenVINO GenAI in the engine's place, in an environment of its own; `engine_openvino.py` talks to it.

    python perf/openvino_peer.py MODEL.gguf THREADS

A line of JSON on stdin is a batch: `prompts`, `schemas` (null: free), `max_tokens`, and `rows` under way at a time. The
line that answers it: `seconds` and `cpu_seconds` from the first request to the last token, `tokens`, and `texts`.
Needs openvino-genai; it reads the GGUF itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections import deque
from typing import Any

import openvino_genai as genai


class Peer:
    """A continuous-batching pipeline on the CPU, greedy, without prefix copies."""

    def __init__(self, path: str, threads: int) -> None:
        scheduler = genai.SchedulerConfig()
        scheduler.max_num_seqs, scheduler.max_num_batched_tokens, scheduler.cache_size = 64, 512, 2
        scheduler.enable_prefix_caching = False
        properties = {"INFERENCE_NUM_THREADS": threads}
        self._pipe = genai.ContinuousBatchingPipeline(path, scheduler, "CPU", properties)

    def run(self, batch: dict[str, Any]) -> dict[str, Any]:
        waiting = deque(enumerate(zip(batch["prompts"], batch["schemas"], strict=True)))
        running: dict[int, Any] = {}
        ids: dict[int, list[int]] = {}
        begin, cpu = time.perf_counter(), time.process_time()
        while waiting or running:
            while waiting and len(running) < batch["rows"]:
                at, (prompt, schema) = waiting.popleft()
                running[at] = self._pipe.add_request(at, prompt, _config(schema, batch["max_tokens"]))
            self._pipe.step()
            for at, handle in running.items():
                if handle.can_read():
                    ids.setdefault(at, []).extend(handle.read()[0].generated_ids)
            running = {at: handle for at, handle in running.items() if str(handle.get_status()).endswith("RUNNING")}
        seconds, cpu_seconds = time.perf_counter() - begin, time.process_time() - cpu
        tokenizer = self._pipe.get_tokenizer()
        texts = [tokenizer.decode(ids[at]) for at in sorted(ids)]
        tokens = sum(map(len, ids.values()))
        return {"seconds": seconds, "cpu_seconds": cpu_seconds, "tokens": tokens, "texts": texts}


def _config(schema: Any, max_tokens: int) -> Any:
    config = genai.GenerationConfig()
    config.max_new_tokens, config.do_sample, config.apply_chat_template = max_tokens, False, False
    if schema is not None:
        config.structured_output_config = genai.StructuredOutputConfig(json_schema=json.dumps(schema))
    return config


def main() -> None:
    out = os.fdopen(os.dup(1), "w")
    # the library prints what it loads
    os.dup2(2, 1)
    peer = Peer(sys.argv[1], int(sys.argv[2]))
    with contextlib.closing(out):
        for line in sys.stdin:
            print(json.dumps(peer.run(json.loads(line))), file=out, flush=True)


if __name__ == "__main__":
    main()
