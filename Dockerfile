# Collegium with its desk, on Debian's own Python: `docker build -t collegium .`
# EXTRAS says what else goes in; with `torch` among them, give TORCH_INDEX=https://download.pytorch.org/whl/cpu
# as well, or PyTorch brings gigabytes for GPUs.
FROM debian:trixie-slim AS build
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3 python3-venv ca-certificates \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY pyproject.toml setup.py constraints.txt README.md LICENSE ./
COPY src ./src
ARG EXTRAS=desk,postgres,parties
ARG TORCH_INDEX=
# hadolint ignore=DL3013
RUN python3 -m venv /opt/collegium \
    && /opt/collegium/bin/pip install --no-cache-dir --constraint constraints.txt \
        ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} ".[$EXTRAS]" \
    && /opt/collegium/bin/pip uninstall --yes pip

FROM debian:trixie-slim
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --user-group --home-dir /var/lib/collegium --no-create-home collegium \
    && install --directory --mode 700 --owner collegium --group collegium /var/lib/collegium
COPY --from=build /opt/collegium /opt/collegium
COPY --chmod=755 containers/entrypoint.sh /usr/local/bin/collegium-entrypoint
ENV PATH=/opt/collegium/bin:$PATH \
    HOME=/var/lib/collegium \
    XDG_CACHE_HOME=/tmp/cache \
    PYTHONUNBUFFERED=1
USER 10001
WORKDIR /var/lib/collegium
VOLUME /var/lib/collegium
EXPOSE 8765
STOPSIGNAL SIGINT
# Any answer will do: under another name than its own the desk says so, and that it is there.
HEALTHCHECK --interval=60s --timeout=10s --start-period=60s --retries=3 \
    CMD ["python3", "-c", "from http.client import HTTPConnection as C; c = C('127.0.0.1', 8765, timeout=5); c.request('GET', '/'); c.getresponse()"]
ENTRYPOINT ["collegium-entrypoint"]
CMD ["desk", "people.ledger", "--host", "0.0.0.0"]
