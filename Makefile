TOOL := go tool -modfile=tools/go.mod

.PHONY: build test race lint fmt generate tidy check

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
