TOOL := go tool -modfile=tools/go.mod

.PHONY: build test race lint fmt generate tidy check bench

build:
	go build -o bin/ ./cmd/...

test:
	go test ./...

race: # needs a C compiler
	CGO_ENABLED=1 go test -race ./...

lint:
	$(TOOL) golangci-lint run ./...
	$(TOOL) buf lint

fmt:
	$(TOOL) golangci-lint fmt ./...
	$(TOOL) buf format -w

generate:
	$(TOOL) buf generate

tidy: # -e: see .ci/run
	go mod tidy -e
	cd tools && go mod tidy

check: # all that CI runs
	.ci/run

BENCH ?= .
bench: # about ten minutes and 3 GB of temporary disk; BENCH=Retrieve measures only what matches
	go test -run '^$$' -bench '$(BENCH)' -benchtime 2s -timeout 20m ./cmd/memsidecar
