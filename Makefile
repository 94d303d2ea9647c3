# Everything runs in an environment of its own below .venv; nothing is installed outside this folder.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
OUT ?= out
EXAMPLES := dynamo-h200 standard-h200 dynamo-l4 single-gpu
export CRDS_DIR ?= $(wildcard $(CURDIR)/crds)

.PHONY: help demo test check golden generate format lint types imports bench crds controlplane test-controlplane load serve clean docs serve-docs shown \
  package push try-image kind-up kind-down
help: ## Show this help
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) not found: install Python 3.11 or newer, or set PYTHON="; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) is older than 3.11: set PYTHON=python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: $(STAMP) ## Render every example on its stack, pass by pass; YAML goes to out/
	@for e in $(EXAMPLES); do \
	  echo "=== $$e (simulated: no cloud, no cluster)"; \
	  $(BIN)/modelplane render examples/$$e --recurse --brief --out $(OUT)/$$e || exit 1; \
	done

test: $(STAMP) ## Unit, golden, property, contract and shell tests
	$(BIN)/pytest -n 2

golden: $(STAMP) ## Rewrite the golden files; review the diff
	MODELPLANE_GOLDEN=write $(BIN)/pytest tests/golden tests/unit/test_replica_goldens.py

check: $(STAMP) generate format lint types imports ## Everything but the tests; fails where it changed a file
	@git diff --exit-code --stat || { echo "make check changed the files above: commit them"; exit 1; }

generate: $(STAMP)
	$(BIN)/python tools/generate.py

format: $(STAMP)
	$(BIN)/ruff format --quiet functions tests tools benchmarks

lint: $(STAMP)
	$(BIN)/ruff check functions tests tools benchmarks
	$(BIN)/shellcheck .ci/run package/*/*.sh

types: $(STAMP)
	$(BIN)/mypy

imports: $(STAMP)
	$(BIN)/lint-imports

bench: $(STAMP) ## Measure what the design promises; PART=scheduler, memory, kinds, schema or server runs one
	$(BIN)/python -m benchmarks $(PART)

$(VENV)/.docs: $(STAMP)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

docs: $(VENV)/.docs ## Build the documentation into out/site; fails on a dead link or an unlisted page
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

serve-docs: $(VENV)/.docs ## Show the documentation on http://127.0.0.1:8000, rebuilt as it is edited
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

shown: $(STAMP) ## Write the output that documents show anew
	$(BIN)/python tools/shown.py

crds: $(STAMP) ## Download the CRDs the schema tests judge against, from their pinned releases
	$(BIN)/python tools/crds.py crds

$(VENV)/.controlplane: $(STAMP) tests/controlplane/requirements.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -r tests/controlplane/requirements.txt
	@touch $@

controlplane: $(VENV)/.controlplane ## Run a real API server and Crossplane core on loopback until Ctrl-C
	@PYTHONPATH=tests exec $(BIN)/python -m controlplane.up

test-controlplane: $(VENV)/.controlplane ## Test against them; Go builds what is not installed, once
	$(BIN)/pytest -n 2 tests/controlplane

load: $(VENV)/.controlplane ## Measure 200 ModelDeployments over 100 clusters on them; CLUSTERS=, DEPLOYMENTS= and CORE= change that
	@PYTHONPATH=tests $(BIN)/python -u -m controlplane.load

# BUILDER, BASE and PLATFORM reach image.sh by the environment. RUNTIME=none packs a function without its runtime.
package: $(STAMP) ## Build the runtime image and both packages into out/package; REGISTRY= is where they will go
	@[ -n "$(RUNTIME)" ] || package/function/image.sh $(OUT)/runtime
	$(BIN)/python tools/make_package.py build --out $(OUT)/package $(if $(REGISTRY),--registry '$(REGISTRY)') \
	  $(if $(filter none,$(RUNTIME)),,--runtime '$(or $(RUNTIME),$(OUT)/runtime)')

push: $(STAMP) ## Build the packages from a clean commit and push them to REGISTRY=, with skopeo, crane or crossplane
	@$(BIN)/python tools/make_package.py check --registry '$(REGISTRY)'
	@$(MAKE) --no-print-directory package
	$(BIN)/python tools/make_package.py push --out $(OUT)/package --registry '$(REGISTRY)'

try-image: $(STAMP) ## Start the built image's files, read-only, and measure size and start; root on Linux
	$(BIN)/python tools/try_image.py $(OUT)/runtime

kind-up: $(STAMP) ## Run Crossplane with these packages in a kind cluster; needs docker, kind, kubectl and helm
	@OUT=$(OUT) package/kind/up.sh

kind-down: ## Remove that cluster and its registry
	@package/kind/down.sh

serve: $(STAMP) ## Run the function on loopback without TLS, for `crossplane composition render`
	$(BIN)/modelplane serve --insecure --address 127.0.0.1:9443

clean: ## Remove the environment and everything generated that is not checked in
	rm -rf $(VENV) $(OUT) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
