TOOL := go tool -modfile=tools/go.mod

# Reproducible: the same commit and Go version give the same bytes in any folder, because paths, build id, cgo and Go's own
# version stamp are turned off. Set COMMIT and VERSION when you build from a source archive without git.
COMMIT ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null)$(shell git diff --quiet HEAD 2>/dev/null || echo -dirty)
VERSION ?= $(shell git describe --tags --exact-match 2>/dev/null)
BUILD := CGO_ENABLED=0 go build -trimpath -buildvcs=false \
	-ldflags '-s -w -buildid= -X github.com/memsidecar/memsidecar/internal/sidecar.builtVersion=$(VERSION) -X github.com/memsidecar/memsidecar/internal/sidecar.builtCommit=$(COMMIT)'

.PHONY: build sbom test race faults cross lint fmt generate weights tidy check bench soak attacks fuzz

build:
	$(BUILD) -o bin/ ./cmd/memsidecar

sbom: build # the bill of materials and the licences of the binary
	cd tools && go run ./sbom -binary ../bin/memsidecar -sbom ../bin/sbom.cdx.json -licences ../bin/licences.md

test:
	go test ./...

race: # needs a C compiler
	CGO_ENABLED=1 go test -race ./...

POWER_LOSSES ?= 1000
faults: # Linux with strace; about a minute
	POWER_LOSSES=$(POWER_LOSSES) go test -count=1 -timeout 5m -v -run 'TestPowerLoss|TestDiskFaults|TestSmallDisk|TestLostDataFolderStopsAcknowledging|TestKilledWhileReembedding' ./cmd/memsidecar

cross: # other platforms than CI's; takes minutes with an empty cache
	for t in windows/amd64 darwin/arm64 freebsd/amd64 linux/arm64; do \
		echo "== $$t" && CGO_ENABLED=0 GOOS=$${t%/*} GOARCH=$${t#*/} go vet ./... || exit 1; \
	done

lint:
	$(TOOL) golangci-lint run ./...
	$(TOOL) buf lint

fmt:
	$(TOOL) golangci-lint fmt ./...
	$(TOOL) buf format -w

generate:
	$(TOOL) buf generate

weights: # of the classifier, after a change of dataset/; on amd64, so that CI gets the same bytes
	go run ./cmd/memeval train dataset/messages/train/*.jsonl dataset/talk/train/*.jsonl --out internal/decide/classify/weights.gz >/dev/null

tidy: # -e: .ci/run says why
	go mod tidy -e
	cd tools && go mod tidy

check: # everything that CI runs
	.ci/run

BENCH ?= .
bench: # about ten minutes and 3 GB of temporary disk; BENCH=Retrieve runs only matching benchmarks
	go test -run '^$$' -bench '$(value BENCH)' -benchtime 2s -timeout 20m ./cmd/memsidecar

DURATION ?= 1h
soak: # runs the binary under load for DURATION: memory, goroutines, files and disk must not grow
	SOAK=$(DURATION) go test -count=1 -timeout 25h -v -run '^TestSoak$$' ./cmd/memsidecar

attacks: # Linux; three minutes: how much memory hostile callers can make the process use
	MEMORY_ATTACKS=all go test -count=1 -timeout 15m -v -run '^TestMemoryAttacks$$' ./cmd/memsidecar

FUZZ ?= Fuzz
FUZZTIME ?= 1m
fuzz: # runs each fuzz test whose name contains FUZZ for FUZZTIME; failures are stored in testdata/fuzz and become test cases
	@grep -rn --include='*_test.go' '^func $(FUZZ)' . | sed -E 's|^\./(.*)/[^/]*:[0-9]+:func (Fuzz[A-Za-z]*)\(.*|\1 \2|' | while read -r dir name; do \
		echo "== $$dir $$name"; \
		go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) -parallel 1 "./$$dir" </dev/null || exit 1; \
	done
