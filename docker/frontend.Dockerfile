# syntax=docker/dockerfile:1
# docker build -f docker/frontend.Dockerfile -t triton-guided-frontend:0.1.0 .     (from the repository root)
FROM python:3.12-slim AS wheel
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY grammar grammar
COPY kernels kernels
COPY model_repository model_repository
COPY openai_frontend openai_frontend
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /dist .

FROM python:3.12-slim
# The extra `frontend` holds no torch: constraints are compiled and checked without it.
RUN --mount=type=bind,from=wheel,source=/dist,target=/dist \
    --mount=type=bind,source=constraints.txt,target=/constraints.txt \
    pip install --no-cache-dir --constraint /constraints.txt "$(echo /dist/*.whl)[frontend]" \
    && useradd --uid 1000 --no-create-home --shell /usr/sbin/nologin guided
ENV GUIDED_HOST=0.0.0.0 \
    GUIDED_PORT=9000 \
    PYTHONUNBUFFERED=1
USER 1000:1000
WORKDIR /tmp
EXPOSE 9000
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:9000/health', timeout=4)"]
CMD ["python", "-m", "guided_frontend"]
