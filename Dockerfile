# One image for every role: API, search runner, migration, worker. Nothing is compiled in it but Python wheels.
FROM python:3.11-slim AS wheel
WORKDIR /source
COPY . .
RUN pip install --no-cache-dir build \
    && python -m build --wheel --outdir /wheel

FROM python:3.11-slim
# OpenMP's runtime library, which xgboost and scikit-learn load.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libgomp1 \
    && rm -rf /var/lib/apt/lists/*
RUN useradd --system --uid 10001 --create-home --home-dir /home/tilewright tilewright
COPY --from=wheel /wheel /wheel
RUN wheel="$(ls /wheel/*.whl)" \
    && pip install --no-cache-dir "${wheel}[server,postgres]" \
    && rm -rf /wheel
USER tilewright
WORKDIR /home/tilewright
ENV TILEWRIGHT_HOST=0.0.0.0 PYTHONUNBUFFERED=1
EXPOSE 8470
# Of the API; the other roles have none in docker-compose.yml, where the runtime watches their process.
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8470/readyz', timeout=4)"]
ENTRYPOINT ["tilewright"]
CMD ["serve", "--no-search"]
