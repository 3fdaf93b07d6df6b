# The binary of `make build` in an otherwise empty image: no shell, no libc, no package manager.
#
#   docker build -t memsidecar --build-arg VERSION=v0.1.0 --build-arg COMMIT=$(git rev-parse --short=12 HEAD) .
#
# Mounts and addresses: docs/deployment.md.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY . .
ARG TARGETOS
ARG TARGETARCH
ARG VERSION
ARG COMMIT
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false \
    -ldflags "-s -w -buildid= -X github.com/memsidecar/memsidecar/internal/sidecar.builtVersion=$VERSION -X github.com/memsidecar/memsidecar/internal/sidecar.builtCommit=$COMMIT" -o /rootfs/memsidecar ./cmd/memsidecar
# A new volume takes its owner from the folder in the image.
RUN mkdir -p /rootfs/data /rootfs/run/memsidecar /rootfs/etc/ssl/certs \
    && cp /etc/ssl/certs/ca-certificates.crt /rootfs/etc/ssl/certs/ \
    && chown -R 65532:65532 /rootfs/data /rootfs/run/memsidecar \
    && chmod 0700 /rootfs/data

FROM scratch
COPY --from=build /rootfs /
USER 65532:65532
ENV MEMSIDECAR_DATA_DIR=/data
VOLUME /data
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s --retries=3 CMD ["/memsidecar", "health", "--timeout", "4s"]
ENTRYPOINT ["/memsidecar"]
CMD ["serve"]
