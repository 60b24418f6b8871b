# The commands of this project. CONTRIBUTING.md explains them.
.PHONY: synth test check docs e2e ci

synth:  ## Write dist/, and that of each example.
	uv run python app.py
	for example in examples/*/; do (cd $$example && uv run python app.py) || exit 1; done

test:  ## Run the tests of the README.
	uv run pytest -q

check:  ## Run the static checks.
	uv run ruff check .
	uv run ruff format --check .
	uv run mypy
	for app in examples/*/app.py; do uv run mypy $$app || exit 1; done
	uv run lint-imports
	uv run python benchmarks/sizes.py

docs:  ## Build the documentation site.
	.ci/site

e2e:  ## Run the end-to-end tests on the programs that are on this machine.
	uv run python tests/e2e/assets.py
	uv run --group e2e pytest -q --dist loadgroup -m e2e tests/e2e

ci:  ## Run everything that must hold before a change lands.
	.ci/run
