# syntax=docker/dockerfile:1
# docker build -f docker/server.Dockerfile -t triton-guided-server:0.1.0 .        (from the repository root)
#
# TRITON_TAG: any NGC tag that ends in -py3 and carries Python 3.11 or 3.12, which is 24.12 or newer. The pinned
# transformers does not install on the Python 3.10 of older images.
ARG TRITON_TAG=26.07-py3

FROM python:3.12-slim AS wheel
WORKDIR /src
COPY pyproject.toml README.md LICENSE constraints.txt nodeps.txt ./
COPY grammar grammar
COPY kernels kernels
COPY model_repository model_repository
COPY openai_frontend openai_frontend
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /dist . && cp constraints.txt nodeps.txt /dist/

FROM nvcr.io/nvidia/tritonserver:${TRITON_TAG}
USER 0
# The image's Python is marked as the system's own. Its Debian packages have no record that pip could uninstall by, so
# newer versions are laid over them.
ENV PIP_BREAK_SYSTEM_PACKAGES=1
# NumPy: servers up to 24.10 die on the first string tensor with NumPy 2, newer ones take either. The constraint
# numpy==1.26.4 suits both, so every image runs what the tests run.
RUN --mount=type=bind,from=wheel,source=/dist,target=/dist \
    python3 -m pip install --no-cache-dir --ignore-installed --constraint /dist/constraints.txt \
        numpy torch xgrammar numba transformers tokenizers accelerate gguf regex \
    && python3 -m pip install --no-cache-dir --no-deps --requirement /dist/nodeps.txt
RUN --mount=type=bind,from=wheel,source=/dist,target=/dist \
    python3 -m pip install --no-cache-dir --no-deps /dist/*.whl

# The engine is the installed package. The Python backend appends the model's folder to sys.path, so a checkout mounted
# over /models cannot replace it; the server's log says which folder guided_engine came from.
COPY model_repository/guided_llm/config.pbtxt /models/guided_llm/config.pbtxt
COPY model_repository/guided_llm/1/model.py /models/guided_llm/1/model.py
COPY docker/server_probe.py /opt/guided/server_probe.py
RUN install -d -o 1000 -g 1000 /weights /cache

ENV GUIDED_CACHE=/weights \
    HF_HOME=/weights/huggingface \
    HOME=/cache \
    TRITON_CACHE_DIR=/cache/triton \
    NUMBA_CACHE_DIR=/cache/numba
# triton-server in every NGC image
USER 1000:1000
WORKDIR /cache
EXPOSE 8000 8001 8002
HEALTHCHECK --interval=30s --timeout=75s --start-period=15m --retries=3 \
    CMD ["python3", "/opt/guided/server_probe.py"]
CMD ["tritonserver", "--model-repository=/models", "--disable-auto-complete-config", "--exit-timeout-secs=30"]
