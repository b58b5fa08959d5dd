# One image for every service: docker run IMAGE migrate | executor | worker | api | apply ...
# A tag; a release is built from its digest, which the release's workflow looks up: --build-arg PYTHON_IMAGE=NAME@sha256:...
ARG PYTHON_IMAGE=python:3.12-slim
FROM ${PYTHON_IMAGE} AS build
RUN python -m venv /opt/penstock
COPY requirements.txt /source/
RUN /opt/penstock/bin/pip install --no-cache-dir --require-hashes -r /source/requirements.txt
COPY pyproject.toml setup.py README.md LICENSE /source/
COPY common /source/common
COPY services /source/services
COPY migrations /source/migrations
COPY extras/penstock-import /source/extras/penstock-import
RUN /opt/penstock/bin/pip install --no-cache-dir --no-deps --no-build-isolation /source /source/extras/penstock-import

FROM ${PYTHON_IMAGE}
# Numeric, so that Kubernetes can see for itself that it is not root.
RUN useradd --uid 10001 --create-home --home-dir /srv/penstock penstock
COPY --from=build /opt/penstock /opt/penstock
ENV PATH=/opt/penstock/bin:$PATH PYTHONUNBUFFERED=1
WORKDIR /srv/penstock
USER 10001
ENTRYPOINT ["penstock"]
CMD ["--help"]
