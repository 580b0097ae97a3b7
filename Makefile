# Needs Go and, for the device suite only, root on a Debian-like Linux. No target needs Docker.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build

# Without a revision stamp a clone that another user owns builds too.
export GOFLAGS ?= -buildvcs=false
GOTEST := go test -p 2 -timeout 10m
FUZZTIME ?= 10s
AGENT_LIMIT := 14900000 # bytes, arm64, stripped: all kinds, export, trust, audit and enrolment, and a little; 12 MB was the aim with four kinds

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## both commands, into bin/
	@stamp=$$(go run ./internal/release -stamp); set -x; go build -trimpath -ldflags "$$stamp" -o bin/ ./cmd/...

.PHONY: test
test: ## all tests; as root with the device suite, else it says what was not run
	@mkdir -p bin; rc=0; $(GOTEST) -coverpkg=./... -coverprofile=bin/cover.out ./... || rc=1; \
	[ $$rc = 1 ] || test/cover bin/cover.out || rc=1; test/clock || rc=1; test/device/run --if-possible || rc=1; exit $$rc

.PHONY: clock
clock: ## the agent while the clock of its device is set
	@test/clock

.PHONY: device
device: ## the device suite alone (as root); DEVICE_FLAGS='-run TestX' for a part of it
	@test/device/run $(DEVICE_FLAGS)

.PHONY: demo
demo: build ## the main job, end to end on this machine, no root, under a minute
	bin/continuo demo

.PHONY: bench
bench: ## the numbers, with the machine's facts
	go run ./test/bench

.PHONY: check
check: lint layers drift reproduce race fuzz vuln ## everything that a change must pass besides make test

.PHONY: lint
lint: fmt-check vet staticcheck

.PHONY: fmt
fmt: ## format the Go sources
	gofmt -w .

.PHONY: fmt-check
fmt-check:
	@bad=$$(gofmt -l .); [ -z "$$bad" ] || { echo "not formatted (make fmt does it):"; echo "$$bad"; exit 1; }

.PHONY: vet
vet:
	go vet -tags device ./...

.PHONY: staticcheck
staticcheck:
	go tool staticcheck -tags device ./...

.PHONY: vuln
vuln: # exit 3 = found something; 1 with these words = it could not ask
	@rc=0; out=$$(go tool govulncheck ./... 2>&1) || rc=$$?; \
	if [ $$rc = 1 ] && grep -qiE 'dial tcp|no such host|fetching vulnerabilities|vuln\.go\.dev' <<<"$$out"; then \
	  echo "govulncheck was NOT RUN: its database cannot be reached: $$(tail -n 1 <<<"$$out")"; \
	else echo "$$out"; exit $$rc; fi

.PHONY: layers
layers: ## the rules of the repository: imports, folders, documents
	$(GOTEST) -count=1 .

.PHONY: schemas
schemas: ## generate the JSON schemas from the Go types
	go generate ./schemas

.PHONY: drift
drift: # compared with a copy and not with git, so that it also works while one edits
	@old=$$(mktemp -d); trap 'rm -rf "$$old"' EXIT; cp -R schemas/. "$$old"; \
	$(MAKE) --no-print-directory schemas; \
	diff -ru "$$old" schemas || { echo "the schemas did not follow the Go types; they do now: commit them"; exit 1; }

.PHONY: race
race: ## all tests but the device suite under the race detector (needs a C compiler)
	CGO_ENABLED=1 go test -race -p 2 -timeout 20m ./...

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME
	@dirs=$$(grep -rl --include='*_test.go' --exclude-dir=testdata '^func Fuzz' . | xargs -r -n 1 dirname | sort -u) || \
	  { echo "there is no fuzz target"; exit 1; }; \
	n=0; for dir in $$dirs; do \
	  names=$$(go test -list '^Fuzz' $$dir); \
	  for name in $$names; do \
	    [[ $$name = Fuzz* ]] || continue; \
	    echo "$$dir $$name"; n=$$((n + 1)); \
	    go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) -parallel 2 $$dir; \
	  done; \
	done; echo "fuzzed $$n targets for $(FUZZTIME) each"

.PHONY: arm64
arm64: # the agent as most devices run it; make cross builds everything
	CGO_ENABLED=0 GOOS=linux GOARCH=arm64 go build -p 2 -trimpath -ldflags '-s -w' -o dist/continuo-agent-linux-arm64 ./cmd/continuo-agent

.PHONY: cross
cross: ## static arm64, armv7 and armv6 binaries of both commands, into dist/
	@mkdir -p dist; \
	for arch in arm64 armv7 armv6; do \
	  for cmd in continuo continuo-agent; do \
	    goarch=$${arch%v?} goarm=''; [ $$goarch = arm64 ] || goarm=$${arch#armv}; \
	    CGO_ENABLED=0 GOOS=linux GOARCH=$$goarch GOARM=$$goarm \
	      go build -p 2 -trimpath -ldflags '-s -w' -o dist/$$cmd-linux-$$arch ./cmd/$$cmd; \
	    printf '%10d bytes  dist/%s\n' $$(stat -c %s dist/$$cmd-linux-$$arch) $$cmd-linux-$$arch; \
	  done; \
	done; \
	[ $$(stat -c %s dist/continuo-agent-linux-arm64) -le $(AGENT_LIMIT) ] || \
	  { echo "the arm64 agent is larger than $(AGENT_LIMIT) bytes"; exit 1; }

.PHONY: release
release: ## what is given to others, of a commit: all binaries, checksums and contents, into bin/release/; COMMIT=…
	go run ./internal/release -o bin/release $(COMMIT)
	@[ $$(stat -c %s bin/release/continuo-agent-linux-arm64) -le $(AGENT_LIMIT) ] || \
	  { echo "the arm64 agent is larger than $(AGENT_LIMIT) bytes"; exit 1; }

.PHONY: reproduce
reproduce: # G57: the agent of HEAD, for one machine; make release-twice builds everything twice
	go run ./internal/release -twice -only arm64 -commands continuo-agent

.PHONY: release-twice
release-twice: ## everything of a release, built in two places and compared; COMMIT=…
	go run ./internal/release -twice $(COMMIT)

.PHONY: clean
clean: ## remove what make has built here (the boxes' cache stays: test/device/pibox purge --cache)
	rm -rf bin dist
