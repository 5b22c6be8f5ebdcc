# make run    install what is missing, build, predict one real scenario; then measure this machine, predict a step on it and run that step
# make test   install what is missing, build, and run every test
# make bench  build and run the benchmarks
# make gui    build the GUI and start it on an example
# make bench-gui  build and run the benchmarks of the timeline
# make build  build a release; the program is build/release/ringside
# make fit  fit the profiles to the published measurements (minutes) and write model/catalog/published; then build and `make validation`
# make validation  predict the published measurements and write the tables of docs/validation.md
# make dev / make tsan / make clang: build and test with sanitizers / with Clang
JOBS ?= $(shell nproc)
BENCH_FILTER ?= .

.PHONY: run test build gui bench bench-gui fit validation setup configure dev tsan clang install clean

run: build
	./build/release/ringside predict --model gpt2-xl --device a100-80gb-sxm --devices 16 --micro-batch 4 --strategy ddp
	@echo; echo "This machine, two ranks (a minute; a second time its samples are taken over):"
	./build/release/ringside calibrate --quick --local-ranks 2 --out build/here.json
	@echo; echo "A step predicted with that profile, and run:"
	./build/release/ringside run docs/examples/tiny_gpt.json --device cpu --local-ranks 2 --steps 20 --profile build/here.json

build: configure
	cmake --build build/release --target ringside -j $(JOBS)

GUI_FILE ?= docs/examples/gpt2-xl-ddp-16-a100.json
gui: configure
	cmake --build build/release --target ringside-gui -j $(JOBS)
	./build/release/ringside-gui $(GUI_FILE)

test: configure
	cmake --build build/release -j $(JOBS)
	ctest --test-dir build/release -j $(JOBS) --output-on-failure --no-tests=error

bench: configure
	cmake --build build/release --target ringside_bench -j $(JOBS)
	./build/release/tests/ringside_bench --benchmark_filter=$(BENCH_FILTER)

bench-gui: configure
	cmake --build build/release --target ringside_gui_bench -j $(JOBS)
	./build/release/tests/ringside_gui_bench

fit: build
	./build/release/ringside calibrate --from-published --out model/catalog/published

validation: build
	./build/release/ringside validate --published --markdown docs/validation.md

setup:
	@./cmake/setup.sh

configure: setup
	@cmake --preset release $(if $(CI),-DRINGSIDE_WERROR=ON) > build-configure.log 2>&1 || { cat build-configure.log; exit 1; }
	@sed -n '/^-- Ringside /,/^--   Qt/s/^-- //p' build-configure.log; rm -f build-configure.log

dev tsan clang: setup
	cmake --preset $@
	cmake --build build/$@ -j $(JOBS)
	ctest --test-dir build/$@ -j $(JOBS) --output-on-failure --no-tests=error

install: build
	cmake --install build/release

clean:
	rm -rf build
