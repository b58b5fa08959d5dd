# One image for every service: docker run IMAGE migrate | executor | worker | api | apply ...
FROM python:3.12-slim AS build
RUN python -m venv /opt/penstock
COPY requirements.txt /source/
RUN /opt/penstock/bin/pip install --no-cache-dir --require-hashes -r /source/requirements.txt
COPY pyproject.toml setup.py README.md LICENSE /source/
COPY common /source/common
COPY services /source/services
COPY migrations /source/migrations
RUN /opt/penstock/bin/pip install --no-cache-dir --no-deps --no-build-isolation /source

FROM python:3.12-slim
# Numeric, so that Kubernetes can see for itself that it is not root.
RUN useradd --uid 10001 --create-home --home-dir /srv/penstock penstock
COPY --from=build /opt/penstock /opt/penstock
ENV PATH=/opt/penstock/bin:$PATH PYTHONUNBUFFERED=1
WORKDIR /srv/penstock
USER 10001
ENTRYPOINT ["penstock"]
CMD ["--help"]
