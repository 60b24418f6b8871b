# The commands of this project. CONTRIBUTING.md explains them.
.PHONY: synth test check e2e ci

synth:  ## Write dist/.
	uv run python app.py

test:  ## Run the tests of the README.
	uv run pytest -q

check:  ## Run the static checks.
	uv run ruff check .
	uv run ruff format --check .
	uv run mypy
	uv run lint-imports
	uv run python benchmarks/sizes.py

e2e:  ## Run the end-to-end tests on the programs that are on this machine.
	uv run python tests/e2e/assets.py
	uv run --group e2e pytest -q --dist loadgroup -m e2e tests/e2e

ci:  ## Run everything that must hold before a change lands.
	.ci/run
